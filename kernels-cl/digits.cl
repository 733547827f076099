// A network with one hidden layer that learns to read digits. Each work-item computes one number, and always sums in
// the same order. So results of another device, or of the host, differ only by rounding.

#define INPUTS 64
#define HIDDEN 32
#define DIGITS 10

// units[sample][unit] = tanh(bias + sum of input x weight), for the samples of a batch; eight units a work-item
__kernel void hidden(__global const float *images, __global const float *weights, __global float *units, uint first) {
    size_t eight = get_global_id(0), sample = get_global_id(1);
    __global const float *image = images + (first + sample) * INPUTS;
    float8 sum = vload8(INPUTS * HIDDEN / 8 + eight, weights);
    for (uint i = 0; i < INPUTS; ++i)
        sum += image[i] * vload8(i * HIDDEN / 8 + eight, weights);
    vstore8(tanh(sum), sample * HIDDEN / 8 + eight, units);
}

// error[sample][digit] = softmax of the second layer, minus 1 for the correct digit
__kernel void output(__global const float *units, __global const float *weights, __global const uint *labels,
                     __global float *error, uint first) {
    size_t sample = get_global_id(0);
    float digit[DIGITS], most = -1e30f, all = 0.0f;
    for (uint k = 0; k < DIGITS; ++k) {
        float sum = weights[HIDDEN * DIGITS + k];
        for (uint j = 0; j < HIDDEN; ++j)
            sum += units[sample * HIDDEN + j] * weights[j * DIGITS + k];
        digit[k] = sum;
        most = fmax(most, sum);
    }
    for (uint k = 0; k < DIGITS; ++k) {
        digit[k] = exp(digit[k] - most);
        all += digit[k];
    }
    for (uint k = 0; k < DIGITS; ++k)
        error[sample * DIGITS + k] = digit[k] / all - (labels[first + sample] == k ? 1.0f : 0.0f);
}

// of_unit[sample][unit] = the error, propagated back to the hidden unit
__kernel void back(__global const float *error, __global const float *weights, __global const float *units,
                   __global float *of_unit) {
    size_t unit = get_global_id(0), sample = get_global_id(1);
    float sum = 0.0f, at = units[sample * HIDDEN + unit];
    for (uint k = 0; k < DIGITS; ++k)
        sum += error[sample * DIGITS + k] * weights[unit * DIGITS + k];
    of_unit[sample * HIDDEN + unit] = sum * (1.0f - at * at);
}

// weights[from][to] -= rate x mean of input x error; the row after the last input is the bias, whose input is 1
__kernel void learn(__global const float *inputs, __global const float *errors, __global float *weights, uint from,
                    uint to, uint first, uint batch, float rate) {
    size_t k = get_global_id(0), i = get_global_id(1);
    float sum = 0.0f;
    for (uint sample = 0; sample < batch; ++sample)
        sum += (i < from ? inputs[(first + sample) * from + i] : 1.0f) * errors[sample * to + k];
    weights[i * to + k] -= rate * sum / (float)batch;
}

// The same, eight columns a work-item
__kernel void learn_eight(__global const float *inputs, __global const float *errors, __global float *weights, uint from,
                          uint to, uint first, uint batch, float rate) {
    size_t k = get_global_id(0), i = get_global_id(1), eights = to / 8;
    float8 sum = 0.0f;
    for (uint sample = 0; sample < batch; ++sample)
        sum += (i < from ? inputs[(first + sample) * from + i] : 1.0f) * vload8(sample * eights + k, errors);
    vstore8(vload8(i * eights + k, weights) - rate * sum / (float)batch, i * eights + k, weights);
}
