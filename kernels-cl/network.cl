// The layers of a small convolutional network. Each work-item computes one number of one picture: dimension 0 is the
// picture, and dimension 1 is the number within the picture. Sums use the same order as on the host, so results differ
// only by rounding.

// A convolution of 3 x 3 points over all channels. Negative results become zero.
__kernel void conv(__global const float *in, __global const float *weights, __global float *out, uint channels,
                   uint side) {
    size_t picture = get_global_id(0), at = get_global_id(1), count = get_global_size(1);
    int y = at / side % side, x = at % side;
    uint row = channels * 9 + 1;
    __global const float *w = weights + at / (side * side) * row;
    in += picture * channels * side * side;
    float sum = w[row - 1];
    for (uint c = 0; c < channels; ++c)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                if (y + dy >= 0 && y + dy < (int)side && x + dx >= 0 && x + dx < (int)side)
                    sum += w[c * 9 + (dy + 1) * 3 + dx + 1] * in[(c * side + y + dy) * side + x + dx];
    out[picture * count + at] = fmax(sum, 0.0f);
}

__kernel void add(__global const float *a, __global const float *b, __global float *out) {
    size_t at = get_global_id(0) * get_global_size(1) + get_global_id(1);
    out[at] = a[at] + b[at];
}

// The largest of 2 x 2 points. `side` is the side of the result.
__kernel void pool(__global const float *in, __global float *out, uint side) {
    size_t picture = get_global_id(0), at = get_global_id(1), count = get_global_size(1);
    size_t channel = at / (side * side), y = at / side % side, x = at % side;
    in += picture * count * 4 + (channel * side * 2 + y * 2) * side * 2 + x * 2;
    out[picture * count + at] = fmax(fmax(in[0], in[1]), fmax(in[side * 2], in[side * 2 + 1]));
}

__kernel void dense(__global const float *in, __global const float *weights, __global float *out, uint inputs) {
    size_t picture = get_global_id(0), at = get_global_id(1), count = get_global_size(1);
    __global const float *w = weights + at * (inputs + 1);
    in += picture * inputs;
    float sum = 0.0f;
    for (uint i = 0; i < inputs; ++i)
        sum += w[i] * in[i];
    out[picture * count + at] = w[inputs] + sum;
}
