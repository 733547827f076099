size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
typedef int clgraph_fuse_id;
#define clgraph_fuse_beyond 1
#line 1
kernel void f(global int *a, int by) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] += by + (int)get_global_id(1); }
kernel void g(global int *a) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] *= 3; }

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
void clgraph_fuse_item_f(global int * a , int by, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] += by + (int)get_global_id(1); }
void clgraph_fuse_item_g(global int * a, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] *= 3; }
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
__attribute__((noinline)) void clgraph_fuse_run1_f(global int * a , int by, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2, const uint clgraph_fuse_from, const uint clgraph_fuse_to, const uint clgraph_fuse_row, const uint clgraph_fuse_end) {
    const uint clgraph_fuse_items = clgraph_fuse_to - clgraph_fuse_from, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
        clgraph_fuse_item_f(a, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_f(a, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
void clgraph_fuse_turn1_f(global int * a , int by, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2, const uint clgraph_fuse_from, const uint clgraph_fuse_to, const uint clgraph_fuse_row, const uint clgraph_fuse_end) {
    const uint clgraph_fuse_items = clgraph_fuse_to - clgraph_fuse_from, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
        clgraph_fuse_item_f(a, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_f(a, by, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
__attribute__((noinline)) void clgraph_fuse_run1_g(global int * a, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2, const uint clgraph_fuse_from, const uint clgraph_fuse_to, const uint clgraph_fuse_row, const uint clgraph_fuse_end) {
    const uint clgraph_fuse_items = clgraph_fuse_to - clgraph_fuse_from, clgraph_fuse_group = (uint)get_local_size(0);
    const uint clgraph_fuse_turns = clgraph_fuse_items / clgraph_fuse_group;
    const clgraph_fuse_id clgraph_fuse_v = (clgraph_fuse_id)get_local_id(0);
    for (uint clgraph_fuse_i = 0; clgraph_fuse_i < clgraph_fuse_turns; ++clgraph_fuse_i)
        clgraph_fuse_item_g(a, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_i * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
    if (clgraph_fuse_turns * clgraph_fuse_group + (uint)clgraph_fuse_v < clgraph_fuse_items)
        clgraph_fuse_item_g(a, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_from + (clgraph_fuse_id)clgraph_fuse_turns * (clgraph_fuse_id)clgraph_fuse_group + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, int clgraph_fuse_a1, int clgraph_fuse_a2, const uint clgraph_fuse_a3, const uint clgraph_fuse_a4, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    const uint clgraph_fuse_width = clgraph_fuse_a3, clgraph_fuse_height = 1 * 1;
    const uint clgraph_fuse_of_row = (clgraph_fuse_width + 15) / 16;
    const uint clgraph_fuse_rows = clgraph_fuse_width > 16 ? 1 : 16 / clgraph_fuse_width;
    const uint clgraph_fuse_from = (uint)get_group_id(0) % clgraph_fuse_of_row * 16;
    const uint clgraph_fuse_to = clgraph_fuse_width - clgraph_fuse_from > 16 ? clgraph_fuse_from + 16 : clgraph_fuse_width;
    const uint clgraph_fuse_row = (uint)get_group_id(0) / clgraph_fuse_of_row * clgraph_fuse_rows;
    const uint clgraph_fuse_end = clgraph_fuse_height - clgraph_fuse_row > clgraph_fuse_rows ? clgraph_fuse_row + clgraph_fuse_rows : clgraph_fuse_height;
    clgraph_fuse_run1_f(clgraph_fuse_a0, clgraph_fuse_a1, 1, clgraph_fuse_a4, 0, 0, clgraph_fuse_a3, 1, 1, 1, 1, 1, clgraph_fuse_from, clgraph_fuse_to, clgraph_fuse_row, clgraph_fuse_end);
    clgraph_fuse_run1_g(clgraph_fuse_a0, 1, clgraph_fuse_a4, 0, 0, clgraph_fuse_a3, 1, 1, 1, 1, 1, clgraph_fuse_from, clgraph_fuse_to, clgraph_fuse_row, clgraph_fuse_end);
    for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 4; ++clgraph_fuse_turn) {
        clgraph_fuse_turn1_f(clgraph_fuse_a0, clgraph_fuse_a2, 1, clgraph_fuse_a4, 0, 0, clgraph_fuse_a3, 1, 1, 1, 1, 1, clgraph_fuse_from, clgraph_fuse_to, clgraph_fuse_row, clgraph_fuse_end);
    }
}
