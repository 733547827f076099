__attribute__((always_inline)) size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
typedef uint clgraph_fuse_id;
#define clgraph_fuse_beyond 1
#line 1
size_t at() { return get_global_id(0); }
static inline float twice(float x) { return 2 * x; }
__attribute__((always_inline)) static float of(global const float *from, uint by) { return twice(from[at() * by]); }
void unused() { at(); }
kernel void f(global float *to) { to[at()] = of(to, get_work_dim()); }
kernel void g(global float *to) { to[get_global_id(0)] = twice(1); }

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
size_t clgraph_fuse_of_at(const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2);
float clgraph_fuse_of_of(global const float * from , uint by, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2);
#undef at
#define at() clgraph_fuse_of_at(clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2)
#undef of
#define of(...) clgraph_fuse_of_of(__VA_ARGS__, clgraph_fuse_x, clgraph_fuse_y, clgraph_fuse_z, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2)
size_t clgraph_fuse_of_at(const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { return get_global_id(0); }
float clgraph_fuse_of_of(global const float * from , uint by, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { return twice(from[at() * by]); }
__attribute__((always_inline)) void clgraph_fuse_item_f(global float * to, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { to[at()] = of(to, get_work_dim()); }
__attribute__((always_inline)) void clgraph_fuse_item_g(global float * to, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { to[get_global_id(0)] = twice(1); }
#undef at
#undef of
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
__attribute__((noinline)) void clgraph_fuse_run1_f(global float * to, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    for (uint clgraph_fuse_x = clgraph_fuse_o0; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_n0; ++clgraph_fuse_x)
        clgraph_fuse_item_f(to, clgraph_fuse_x, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
__attribute__((noinline)) void clgraph_fuse_run1_g(global float * to, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    for (uint clgraph_fuse_x = clgraph_fuse_o0; clgraph_fuse_x < clgraph_fuse_o0 + clgraph_fuse_n0; ++clgraph_fuse_x)
        clgraph_fuse_item_g(to, clgraph_fuse_x, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0 || get_local_id(0) != 0) return;
    clgraph_fuse_run1_f(clgraph_fuse_a0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1);
    clgraph_fuse_run1_g(clgraph_fuse_a0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1);
}
