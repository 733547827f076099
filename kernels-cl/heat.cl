// Heat that flows through a plate. Fields are stored row by row, with `width` cells in each row.

// One time step: heat flows between each cell and its four neighbours, as much as the cell conducts. The border keeps
// its temperature.
__kernel void heat_step(__global const float *now, __global const float *conducts, __global float *next,
                        uint width, uint height, float rate) {
    uint x = get_global_id(0), y = get_global_id(1), at = y * width + x;
    float here = now[at];
    if (x > 0 && y > 0 && x + 1 < width && y + 1 < height) {
        float flow = now[at - 1] + now[at + 1] + now[at - width] + now[at + width] - 4.0f * here;
        here += rate * conducts[at] * flow;
    }
    next[at] = here;
}
