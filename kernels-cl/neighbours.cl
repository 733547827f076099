// The kernels around a matrix product: before it, vectors are scaled to length one; after it, the nearest neighbour is
// found.

#define POINTS 64

// unit[row] = image[row] / its length
__kernel void to_unit(__global const float *image, __global float *unit) {
    size_t row = get_global_id(0);
    float sum = 0.0f;
    for (uint i = 0; i < POINTS; ++i)
        sum += image[row * POINTS + i] * image[row * POINTS + i];
    for (uint i = 0; i < POINTS; ++i)
        unit[row * POINTS + i] = image[row * POINTS + i] / sqrt(sum);
}

// nearest[row] = the column with the largest number; the first one if there are several
__kernel void largest(__global const float *product, __global uint *nearest, uint columns) {
    size_t row = get_global_id(0);
    uint best = 0;
    for (uint column = 1; column < columns; ++column)
        best = product[row * columns + column] > product[row * columns + best] ? column : best;
    nearest[row] = best;
}
