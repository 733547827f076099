size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
typedef uint clgraph_fuse_id;
#define clgraph_fuse_beyond 1
#line 1
typedef struct { int x; } pair;
kernel void f(global const int *s, global int *t, const pair by) { t[get_global_id(0)] = s[get_global_id(0)] + by.x; }
kernel void g(global int *t) { t[get_global_id(0)] *= 2; }

typedef pair clgraph_fuse_type0;
#define get_work_dim() clgraph_fuse_dims
#define get_global_id(d) clgraph_fuse_pick(d, clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z, 0)
#define get_global_size(d) clgraph_fuse_pick(d, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_beyond)
#define get_global_offset(d) clgraph_fuse_pick(d, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, 0)
#define get_global_linear_id() ((size_t)(((clgraph_fuse_z - clgraph_fuse_o2) * clgraph_fuse_n1 + clgraph_fuse_y - clgraph_fuse_o1) * clgraph_fuse_n0 + clgraph_fuse_x - clgraph_fuse_o0))
#define get_local_id(d) clgraph_fuse_pick(d, (uint)(clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0, (uint)(clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1, (uint)(clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2, 0)
#define get_local_size(d) clgraph_fuse_pick(d, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2, clgraph_fuse_beyond)
#define get_enqueued_local_size(d) clgraph_fuse_pick(d, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2, clgraph_fuse_beyond)
#define get_local_linear_id() ((size_t)((((uint)(clgraph_fuse_z - clgraph_fuse_o2) % clgraph_fuse_l2) * clgraph_fuse_l1 + (uint)(clgraph_fuse_y - clgraph_fuse_o1) % clgraph_fuse_l1) * clgraph_fuse_l0 + (uint)(clgraph_fuse_x - clgraph_fuse_o0) % clgraph_fuse_l0))
#define get_group_id(d) clgraph_fuse_pick(d, (uint)(clgraph_fuse_x - clgraph_fuse_o0) / clgraph_fuse_l0, (uint)(clgraph_fuse_y - clgraph_fuse_o1) / clgraph_fuse_l1, (uint)(clgraph_fuse_z - clgraph_fuse_o2) / clgraph_fuse_l2, 0)
#define get_num_groups(d) clgraph_fuse_pick(d, clgraph_fuse_n0 / clgraph_fuse_l0, clgraph_fuse_n1 / clgraph_fuse_l1, clgraph_fuse_n2 / clgraph_fuse_l2, clgraph_fuse_beyond)
void clgraph_fuse_item_f(global const int * s , global int * t , const pair by, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { t[get_global_id(0)] = s[get_global_id(0)] + by.x; }
void clgraph_fuse_item_g(global int * t, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { t[get_global_id(0)] *= 2; }
#undef get_work_dim
#undef get_global_id
#undef get_global_size
#undef get_global_offset
#undef get_global_linear_id
#undef get_local_id
#undef get_local_size
#undef get_enqueued_local_size
#undef get_local_linear_id
#undef get_group_id
#undef get_num_groups
void clgraph_fuse_turn1_f(global const int * s , global int * t , const pair by, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_items = clgraph_fuse_n0, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_i = 0;
    do {
        clgraph_fuse_item_f(s, t, by, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v), 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_GLOBAL_MEM_FENCE);
        clgraph_fuse_i += clgraph_fuse_group;
    } while (clgraph_fuse_i + clgraph_fuse_group <= clgraph_fuse_items);
    if (clgraph_fuse_i + clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_f(s, t, by, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v), 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    barrier(CLK_GLOBAL_MEM_FENCE);
}
__attribute__((noinline)) void clgraph_fuse_run3_g(global int * t, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_items = clgraph_fuse_n0 * clgraph_fuse_n1 * clgraph_fuse_n2, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_i = 0;
    do {
        clgraph_fuse_item_g(t, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v) % clgraph_fuse_n0, clgraph_fuse_o1 + (clgraph_fuse_i + clgraph_fuse_v) / clgraph_fuse_n0 % clgraph_fuse_n1, clgraph_fuse_o2 + (clgraph_fuse_i + clgraph_fuse_v) / (clgraph_fuse_n0 * clgraph_fuse_n1), clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_GLOBAL_MEM_FENCE);
        clgraph_fuse_i += clgraph_fuse_group;
    } while (clgraph_fuse_i + clgraph_fuse_group <= clgraph_fuse_items);
    if (clgraph_fuse_i + clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_g(t, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v) % clgraph_fuse_n0, clgraph_fuse_o1 + (clgraph_fuse_i + clgraph_fuse_v) / clgraph_fuse_n0 % clgraph_fuse_n1, clgraph_fuse_o2 + (clgraph_fuse_i + clgraph_fuse_v) / (clgraph_fuse_n0 * clgraph_fuse_n1), clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    barrier(CLK_GLOBAL_MEM_FENCE);
}
void clgraph_fuse_turn1_g(global int * t, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_items = clgraph_fuse_n0, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_i = 0;
    do {
        clgraph_fuse_item_g(t, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v), 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_GLOBAL_MEM_FENCE);
        clgraph_fuse_i += clgraph_fuse_group;
    } while (clgraph_fuse_i + clgraph_fuse_group <= clgraph_fuse_items);
    if (clgraph_fuse_i + clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_g(t, clgraph_fuse_o0 + (clgraph_fuse_i + clgraph_fuse_v), 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    barrier(CLK_GLOBAL_MEM_FENCE);
}
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global void *clgraph_fuse_a1, global void *clgraph_fuse_a2, global void *clgraph_fuse_a3, global void *clgraph_fuse_a4, global void *clgraph_fuse_a5, clgraph_fuse_type0 clgraph_fuse_a6, clgraph_fuse_type0 clgraph_fuse_a7, clgraph_fuse_type0 clgraph_fuse_a8, clgraph_fuse_type0 clgraph_fuse_a9, clgraph_fuse_type0 clgraph_fuse_a10, const uint clgraph_fuse_a11, const uint clgraph_fuse_a12, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    global void *local clgraph_fuse_t0[6];
    local clgraph_fuse_type0 clgraph_fuse_t1[5];
    local uint clgraph_fuse_t2[5];
    if (get_local_id(0) == 0) {
        clgraph_fuse_t0[0] = clgraph_fuse_a0;
        clgraph_fuse_t0[1] = clgraph_fuse_a1;
        clgraph_fuse_t0[2] = clgraph_fuse_a2;
        clgraph_fuse_t0[3] = clgraph_fuse_a3;
        clgraph_fuse_t0[4] = clgraph_fuse_a4;
        clgraph_fuse_t0[5] = clgraph_fuse_a5;
        clgraph_fuse_t1[0] = clgraph_fuse_a6;
        clgraph_fuse_t1[1] = clgraph_fuse_a7;
        clgraph_fuse_t1[2] = clgraph_fuse_a8;
        clgraph_fuse_t1[3] = clgraph_fuse_a9;
        clgraph_fuse_t1[4] = clgraph_fuse_a10;
        clgraph_fuse_t2[0] = clgraph_fuse_a11;
        clgraph_fuse_t2[1] = clgraph_fuse_a12;
        clgraph_fuse_t2[2] = clgraph_fuse_a11;
        clgraph_fuse_t2[3] = clgraph_fuse_a12;
        clgraph_fuse_t2[4] = clgraph_fuse_a11;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 5; ++clgraph_fuse_turn) {
        clgraph_fuse_turn1_f(clgraph_fuse_t0[clgraph_fuse_turn], clgraph_fuse_t0[clgraph_fuse_turn + 1], clgraph_fuse_t1[clgraph_fuse_turn], 1, 0, 0, 0, clgraph_fuse_t2[clgraph_fuse_turn], 1, 1, 1, 1, 1);
        clgraph_fuse_turn1_g(clgraph_fuse_t0[clgraph_fuse_turn + 1], 1, 0, 0, 0, clgraph_fuse_a11, 1, 1, 1, 1, 1);
    }
    clgraph_fuse_run3_g(clgraph_fuse_a0, 2, 0, 0, 0, clgraph_fuse_a12, 1, 1, 1, 1, 1);
    for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 6; ++clgraph_fuse_turn) {
        clgraph_fuse_turn1_f(clgraph_fuse_a0, clgraph_fuse_a1, clgraph_fuse_a6, 1, 0, 0, 0, clgraph_fuse_a12, 1, 1, 1, 1, 1);
        clgraph_fuse_turn1_f(clgraph_fuse_a1, clgraph_fuse_a0, clgraph_fuse_a6, 1, 0, 0, 0, clgraph_fuse_a12, 1, 1, 1, 1, 1);
    }
}
