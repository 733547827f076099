// Spreads the brightness of a picture over the whole range, with the histogram that histogram.cl has counted.

CLG_DEVICE_GLOBAL_ARRAY(uint, histogram, [256]);
// The new brightness for each old brightness.
CLG_DEVICE_GLOBAL_ARRAY(uchar, curve, [256]);

uint below(uint value CLG_PARAMS) {
    uint sum = 0;
    for (uint at = 0; at <= value; at++) sum += CLG_GLOBAL(histogram)[at];
    return sum;
}

// One work-item for each brightness.
kernel void draw_curve(uint pixels CLG_PARAMS) {
    uint value = get_global_id(0);
    CLG_GLOBAL(curve)[value] = (uchar)((ulong)below(value CLG_ARGS) * 255 / pixels);
}

kernel void apply(global const uchar4 *from, global uchar4 *into CLG_PARAMS) {
    size_t i = get_global_id(0);
    uchar4 pixel = from[i];
    into[i] = (uchar4)(CLG_GLOBAL(curve)[pixel.x], CLG_GLOBAL(curve)[pixel.y], CLG_GLOBAL(curve)[pixel.z], 255);
}
