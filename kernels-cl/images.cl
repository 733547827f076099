// Kernels for the tests of images.

// out[x, y] = in at the mirrored column, plus `by`
kernel void mirror(read_only image2d_t in, write_only image2d_t out, uint by) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    uint4 pixel = read_imageui(in, (int2)(get_image_width(in) - 1 - at.x, at.y));
    write_imageui(out, at, pixel + by);
}

// Reads between pixels and outside of the image.
kernel void sampled(read_only image2d_t in, sampler_t sampler, global float4 *out, float step) {
    size_t at = get_global_id(0);
    out[at] = read_imagef(in, sampler, (float2)(at * step, 0.5f));
}

// Adds a number to the pixels of one layer.
kernel void raise(read_only image2d_array_t in, write_only image2d_array_t out, int layer, uint by) {
    int4 at = (int4)(get_global_id(0), get_global_id(1), layer, 0);
    write_imageui(out, at, read_imageui(in, at) + by);
}

// Reads an image that is made of a buffer.
kernel void of_buffer(read_only image1d_buffer_t in, global uint4 *out) {
    int at = get_global_id(0);
    out[at] = read_imageui(in, at);
}

kernel void both(read_only image1d_buffer_t image, global uint *buffer) {
    buffer[get_global_id(0)] = read_imageui(image, 0).x;
}

kernel void pixels(global uint *buffer) {
    buffer[get_global_id(0)] += 1;
}
