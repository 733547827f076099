// Counts how often each brightness occurs in a picture. The counters are a device global, which equalize.cl shares.

CLG_DEVICE_GLOBAL_ARRAY(uint, histogram, [256]);

// Weights red, green and blue as television standards do.
uchar brightness(uchar4 pixel) { return (uchar)((77 * pixel.x + 151 * pixel.y + 28 * pixel.z) >> 8); }

kernel void count(global const uchar4 *picture CLG_PARAMS) {
    atomic_inc(&CLG_GLOBAL(histogram)[brightness(picture[get_global_id(0)])]);
}
