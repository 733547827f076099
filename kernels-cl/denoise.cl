// Non-local means: each pixel becomes the mean of the pixels around it. A pixel counts more if its surroundings are
// similar. RADIUS is the distance up to which pixels count; PATCH is the size of the surroundings. With IMAGES the
// kernel takes images and a sampler that handles coordinates outside of the image; without IMAGES it takes buffers.

#ifdef IMAGES
#define INPUT read_only image2d_t in, sampler_t edge
#define OUTPUT write_only image2d_t out
#define PIXEL(at) read_imagef(in, edge, at)
#define STORE(at, pixel) write_imagef(out, at, pixel)
#else
#define INPUT global const float4 *in
#define OUTPUT global float4 *out
#define PIXEL(at) in[index(at)]
#define STORE(at, pixel) out[index(at)] = pixel
// The index of the nearest pixel inside the picture.
size_t index(int2 at) {
    int2 size = (int2)(get_global_size(0), get_global_size(1));
    at = clamp(at, (int2)(0), size - 1);
    return at.y * size.x + at.x;
}
#endif

float weight(float distance, float strength) {
    float mean = distance / (3 * (2 * PATCH + 1) * (2 * PATCH + 1));
    return exp(-mean / (strength * strength));
}

kernel void denoise(INPUT, OUTPUT, float strength) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0.0f;
    float all = 0.0f;
    for (int dy = -RADIUS; dy <= RADIUS; ++dy)
        for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
            float distance = 0.0f;
            for (int py = -PATCH; py <= PATCH; ++py)
                for (int px = -PATCH; px <= PATCH; ++px) {
                    float4 differs = PIXEL(at + (int2)(px, py)) - PIXEL(at + (int2)(dx + px, dy + py));
                    distance += dot(differs.xyz, differs.xyz);
                }
            float by = weight(distance, strength);
            sum += by * PIXEL(at + (int2)(dx, dy));
            all += by;
        }
    STORE(at, sum / all);
}
