// Copies a box of elements where OpenCL has no command for it: a rectangle between addresses, or anything between an
// address and a buffer. Starts and pitches are in elements.
#define COPY(NAME, ELEMENT)                                                                                              \
    kernel void NAME(global const ELEMENT *source, global ELEMENT *destination, ulong source_start, ulong source_row,    \
                     ulong source_slice, ulong destination_start, ulong destination_row, ulong destination_slice) {      \
        ulong x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);                                          \
        destination[destination_start + z * destination_slice + y * destination_row + x] =                               \
            source[source_start + z * source_slice + y * source_row + x];                                                \
    }

COPY(clgraph_copy_1, uchar)
COPY(clgraph_copy_4, uint)
COPY(clgraph_copy_16, uint4)
