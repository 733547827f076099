// A camera that sets its own exposure. The host can compute exactly the same bits as the device.
#pragma OPENCL FP_CONTRACT OFF

// picture = frame x gain, clipped
__kernel void expose(__global const uchar4 *frame, __global const float *gain, __global uchar4 *picture) {
    size_t i = get_global_id(0);
    float4 bright = convert_float4(frame[i]) * gain[0] + 0.5f;
    picture[i] = convert_uchar4(min(bright, 255.0f));
}

// For each row: the sum of its brightness, and the number of its clipped pixels.
__kernel void measure(__global const uchar4 *picture, __global uint2 *rows, uint width) {
    size_t row = get_global_id(0);
    uint sum = 0, clipped = 0;
    for (uint x = 0; x < width; ++x) {
        uint4 pixel = convert_uint4(picture[row * width + x]);
        sum += (77 * pixel.x + 151 * pixel.y + 28 * pixel.z) >> 8;
        clipped += pixel.x == 255 || pixel.y == 255 || pixel.z == 255;
    }
    rows[row] = (uint2)(sum, clipped);
}
