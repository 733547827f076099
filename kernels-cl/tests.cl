// Kernels for the tests. They only use integer arithmetic, so every device computes the same bytes.

// out[i] = in[i] * 3 + by
__kernel void scale(__global const uint *in, __global uint *out, uint by) {
    size_t i = get_global_id(0);
    out[i] = in[i] * 3u + by;
}

// a[i] = a[i] * 5 + i
__kernel void stir(__global uint *a) {
    size_t i = get_global_id(0);
    a[i] = a[i] * 5u + (uint)i;
}

// a[i] += b[i]
__kernel void add(__global uint *a, __global const uint *b) {
    size_t i = get_global_id(0);
    a[i] += b[i];
}

// Sums a work-group's elements in local memory and writes the sum to each of them.
__kernel void group_sum(__global uint *a, __local uint *scratch) {
    size_t l = get_local_id(0);
    scratch[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (size_t i = 0; i < get_local_size(0); ++i)
        sum += scratch[i];
    a[get_global_id(0)] = sum;
}

// Adds b[i], or 1 if b is null.
__kernel void add_or_one(__global uint *a, __global const uint *b) {
    size_t i = get_global_id(0);
    a[i] += b ? b[i] : 1u;
}

typedef struct {
    uint scale;
    uint shift;
    uint pad[2];
} affine_t;

__kernel void affine(__global uint *a, affine_t by) {
    size_t i = get_global_id(0);
    a[i] = a[i] * by.scale + by.shift + by.pad[1];
}

// Vector arguments, and ids in two dimensions from an offset.
__kernel void grid(__global uint *a, uint2 size, uint4 weights) {
    uint x = (uint)get_global_id(0), y = (uint)get_global_id(1);
    if (x < size.x && y < size.y)
        a[y * size.x + x] = x * weights.x + y * weights.y + weights.z + weights.w;
}

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void by_eight(__global uint *a) {
    a[get_global_id(0)] = (uint)get_local_size(0);
}

// Keeps a device busy for a while, with many rounds of a cheap recurrence.
__kernel void spin(__global uint *a, uint rounds) {
    uint x = a[get_global_id(0)];
    for (uint i = 0; i < rounds; ++i)
        x = x * 1664525u + 1013904223u;
    a[get_global_id(0)] = x;
}

__kernel void print(__global const uint *a) { printf("clgraph prints %u\n", a[0]); }

__kernel void takes_an_image(__read_only image2d_t image, __global uint *a) { a[0] = (uint)get_image_width(image); }

__kernel __attribute__((reqd_work_group_size(2, 4, 1))) void by_rows(__global uint *a) {
    a[get_global_id(1) * get_global_size(0) + get_global_id(0)] = (uint)get_local_size(1);
}

/* Takes one off a number that is not zero. */
__kernel void count_down(__global uint *a) { a[0] -= a[0] != 0; }
