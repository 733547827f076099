// Copies a box of elements where OpenCL has no command for the copy: a rectangle between two addresses, or any copy
// between an address and a buffer. Starts and pitches are in elements of 1, 4 or 16 bytes.
kernel void clgraph_copy(global const uchar *source, global uchar *destination, ulong source_start, ulong source_row,
                         ulong source_slice, ulong destination_start, ulong destination_row, ulong destination_slice,
                         uint element) {
    ulong x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    ulong from = source_start + z * source_slice + y * source_row + x;
    ulong into = destination_start + z * destination_slice + y * destination_row + x;
    if (element == 16)
        ((global uint4 *)destination)[into] = ((global const uint4 *)source)[from];
    else if (element == 4)
        ((global uint *)destination)[into] = ((global const uint *)source)[from];
    else
        destination[into] = source[from];
}
