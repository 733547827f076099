// Kernels for the tests of device globals: every kind of use that OpenCL C allows for a variable.

typedef struct {
    uint hits;
    uint misses;
    float best;
    uint last[3];
} counters;

CLG_DEVICE_GLOBAL(uint, total);
CLG_DEVICE_GLOBAL(counters, stats);
CLG_DEVICE_GLOBAL_ARRAY(int, table, [3][2]);

uint add(uint by CLG_PARAMS) { return atomic_add(&CLG_GLOBAL(total), by); }

void add_twice(uint by CLG_PARAMS) {
    add(by CLG_ARGS);
    add(by CLG_ARGS);
}

int corner(CLG_ONLY_PARAMS) { return CLG_GLOBAL(table)[2][1]; }

// total += 2 * in[i]; it uses each member of the struct.
kernel void count(global const uint *in CLG_PARAMS) {
    size_t i = get_global_id(0);
    add_twice(in[i] CLG_ARGS);
    if (in[i] % 2 == 0)
        atomic_inc(&CLG_GLOBAL(stats).hits);
    else
        atomic_inc(&CLG_GLOBAL(stats).misses);
    if (i == 2) {
        global counters *all = &CLG_GLOBAL(stats);
        all->best = (float)in[i] + 0.5f;
        all->last[i] = in[i];
    }
}

kernel void turn(CLG_ONLY_PARAMS) {
    global int *cells = &CLG_GLOBAL(table)[0][0];
    int all = corner(CLG_ONLY_ARGS);
    for (int i = 0; i < 6; i++) cells[i] = all - cells[i];
}

// total = total * by + in[0], in one work-item.
kernel void advance(global const uint *in, uint by CLG_PARAMS) { CLG_GLOBAL(total) = CLG_GLOBAL(total) * by + in[0]; }

kernel void load(global uint *out CLG_PARAMS) { out[get_global_id(0)] = CLG_GLOBAL(total); }

kernel void where(global ulong *out CLG_PARAMS) { out[0] = (ulong)&CLG_GLOBAL(total); }

// Uses no device global.
kernel void plain(global uint *out) { out[get_global_id(0)] = (uint)get_global_id(0) + 1; }
