size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
typedef int clgraph_fuse_id;
#define clgraph_fuse_beyond 1
#line 1
kernel void add(global float *to, float by) {
    to[get_global_id(0)] += by;
}

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
void clgraph_fuse_item_add(global float * to , float by, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    to[get_global_id(0)] += by;
}
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
__attribute__((noinline)) void clgraph_fuse_run3_add(global float * to , float by, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_items = clgraph_fuse_n0 * clgraph_fuse_n1 * clgraph_fuse_n2, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);
    if (clgraph_fuse_n0 % clgraph_fuse_group == 0) {
        for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
            clgraph_fuse_item_add(to, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group % clgraph_fuse_n0) + clgraph_fuse_v, (clgraph_fuse_id)clgraph_fuse_o1 + (clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group / clgraph_fuse_n0 % clgraph_fuse_n1), (clgraph_fuse_id)clgraph_fuse_o2 + (clgraph_fuse_id)(clgraph_fuse_i * clgraph_fuse_group / (clgraph_fuse_n0 * clgraph_fuse_n1)), clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        return;
    }
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_items; clgraph_fuse_i += clgraph_fuse_group) {
        const uint clgraph_fuse_at = clgraph_fuse_i + (uint)clgraph_fuse_v;
        if (clgraph_fuse_at < clgraph_fuse_items)
            clgraph_fuse_item_add(to, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)(clgraph_fuse_at % clgraph_fuse_n0), (clgraph_fuse_id)clgraph_fuse_o1 + (clgraph_fuse_id)(clgraph_fuse_at / clgraph_fuse_n0 % clgraph_fuse_n1), (clgraph_fuse_id)clgraph_fuse_o2 + (clgraph_fuse_id)(clgraph_fuse_at / (clgraph_fuse_n0 * clgraph_fuse_n1)), clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    }
}
__attribute__((noinline)) void clgraph_fuse_run1_add(global float * to , float by, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_items = clgraph_fuse_n0, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
        clgraph_fuse_item_add(to, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_add(to, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
kernel __attribute__((reqd_work_group_size(2, 1, 1))) void clgraph_fused_0(global void *clgraph_fuse_a0, float clgraph_fuse_a1, float clgraph_fuse_a2, const uint clgraph_fuse_a3, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    clgraph_fuse_run1_add(clgraph_fuse_a0, clgraph_fuse_a1, 1, 0, 0, 0, clgraph_fuse_a3, 1, 1, 1, 1, 1);
    barrier(CLK_GLOBAL_MEM_FENCE);
    clgraph_fuse_run3_add(clgraph_fuse_a0, clgraph_fuse_a2, 2, 0, 0, 0, clgraph_fuse_a3, 1, 1, 1, 1, 1);
}
