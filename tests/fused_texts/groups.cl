__attribute__((always_inline)) size_t clgraph_fuse_pick(uint clgraph_fuse_d, size_t clgraph_fuse_0, size_t clgraph_fuse_1, size_t clgraph_fuse_2, size_t clgraph_fuse_3) {
    return clgraph_fuse_d == 0 ? clgraph_fuse_0 : clgraph_fuse_d == 1 ? clgraph_fuse_1 : clgraph_fuse_d == 2 ? clgraph_fuse_2 : clgraph_fuse_3;
}
typedef uint clgraph_fuse_id;
#define clgraph_fuse_beyond 1
#line 1
kernel void f(global float *a, local int *given) {
    local float tile[4][5];
    local int
        n;
    const int i = get_local_id(0);
    given[i] = i + 1;
    if (i == 0) n = 3;
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[0][i] = given[n - i];
    a[get_global_id(0)] += tile[0][i];
}
kernel void g(global float *a) { a[get_global_id(0)] *= 3; }

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
__attribute__((always_inline)) void clgraph_fuse_item_g(global float * a, const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) { a[get_global_id(0)] *= 3; }
#undef get_local_id
#define get_local_id(d) clgraph_fuse_pick(d, clgraph_fuse_dims == 1 ? (uint)get_local_id(0) : (uint)get_local_id(0) % clgraph_fuse_l0, (uint)get_local_id(0) / clgraph_fuse_l0 % clgraph_fuse_l1, (uint)get_local_id(0) / (clgraph_fuse_l0 * clgraph_fuse_l1), 0)
#pragma push_macro("tile")
#undef tile
#define tile (*(clgraph_fuse_local_tile + 0))
#pragma push_macro("n")
#undef n
#define n (*(clgraph_fuse_local_n + 0))
void clgraph_fuse_item_f(global float * a , local int * given, local float (*clgraph_fuse_local_tile)[ 4 ] [ 5 ] , local int (*clgraph_fuse_local_n), const clgraph_fuse_id clgraph_fuse_x, const clgraph_fuse_id clgraph_fuse_y, const clgraph_fuse_id clgraph_fuse_z, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    
    

    const int i = get_local_id(0);
    given[i] = i + 1;
    if (i == 0) n = 3;
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[0][i] = given[n - i];
    a[get_global_id(0)] += tile[0][i];
}
#pragma pop_macro("tile")
#pragma pop_macro("n")
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
__attribute__((noinline)) void clgraph_fuse_run3_f(global float * a , local int * given, local float (*clgraph_fuse_local_tile)[ 4 ] [ 5 ] , local int (*clgraph_fuse_local_n), const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    const uint clgraph_fuse_w = clgraph_fuse_n0 / clgraph_fuse_l0;
    const uint clgraph_fuse_h = clgraph_fuse_n1 / clgraph_fuse_l1;
    uint clgraph_fuse_g = 0;
    do {
        clgraph_fuse_item_f(a, given, clgraph_fuse_local_tile, clgraph_fuse_local_n, clgraph_fuse_o0 + clgraph_fuse_g % clgraph_fuse_w * clgraph_fuse_l0 + clgraph_fuse_v % clgraph_fuse_l0, clgraph_fuse_o1 + clgraph_fuse_g / clgraph_fuse_w % clgraph_fuse_h * clgraph_fuse_l1 + clgraph_fuse_v / clgraph_fuse_l0 % clgraph_fuse_l1, clgraph_fuse_o2 + clgraph_fuse_g / (clgraph_fuse_w * clgraph_fuse_h) * clgraph_fuse_l2 + clgraph_fuse_v / (clgraph_fuse_l0 * clgraph_fuse_l1), clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    } while (++clgraph_fuse_g < clgraph_fuse_w * clgraph_fuse_h * (clgraph_fuse_n2 / clgraph_fuse_l2));
}
__attribute__((noinline)) void clgraph_fuse_run1_f(global float * a , local int * given, local float (*clgraph_fuse_local_tile)[ 4 ] [ 5 ] , local int (*clgraph_fuse_local_n), const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_g = 0;
    do {
        clgraph_fuse_item_f(a, given, clgraph_fuse_local_tile, clgraph_fuse_local_n, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_g * (clgraph_fuse_id)clgraph_fuse_l0 + (clgraph_fuse_id)clgraph_fuse_v, 0, 0, 1, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    } while (++clgraph_fuse_g < clgraph_fuse_n0 / clgraph_fuse_l0);
}
void clgraph_fuse_turn1_f(global float * a , local int * given, local float (*clgraph_fuse_local_tile)[ 4 ] [ 5 ] , local int (*clgraph_fuse_local_n), const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    const uint clgraph_fuse_v = (uint)get_local_id(0);
    uint clgraph_fuse_g = 0;
    do {
        clgraph_fuse_item_f(a, given, clgraph_fuse_local_tile, clgraph_fuse_local_n, (clgraph_fuse_id)clgraph_fuse_o0 + (clgraph_fuse_id)clgraph_fuse_g * (clgraph_fuse_id)clgraph_fuse_l0 + (clgraph_fuse_id)clgraph_fuse_v, 0, 0, 1, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    } while (++clgraph_fuse_g < clgraph_fuse_n0 / clgraph_fuse_l0);
}
typedef float clgraph_fuse_type1_f_tile[ 4 ] [ 5 ] ;
typedef int clgraph_fuse_type1_f_n;
__attribute__((noinline)) void clgraph_fuse_run1_g(global float * a, const uint clgraph_fuse_dims, const uint clgraph_fuse_o0, const uint clgraph_fuse_o1, const uint clgraph_fuse_o2, const uint clgraph_fuse_n0, const uint clgraph_fuse_n1, const uint clgraph_fuse_n2, const uint clgraph_fuse_l0, const uint clgraph_fuse_l1, const uint clgraph_fuse_l2) {
    for (uint clgraph_fuse_v = (uint)get_local_id(0); clgraph_fuse_v < clgraph_fuse_n0; clgraph_fuse_v += (uint)get_local_size(0))
        clgraph_fuse_item_g(a, clgraph_fuse_o0 + clgraph_fuse_v, 0, 0, clgraph_fuse_dims, clgraph_fuse_o0, clgraph_fuse_o1, clgraph_fuse_o2, clgraph_fuse_n0, clgraph_fuse_n1, clgraph_fuse_n2, clgraph_fuse_l0, clgraph_fuse_l1, clgraph_fuse_l2);
}
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, local ulong16 *clgraph_fuse_p1, const uint clgraph_fuse_a2, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    local void *clgraph_fuse_a1 = (local void *)clgraph_fuse_p1;
    local clgraph_fuse_type1_f_tile clgraph_fuse_local1_f_tile __attribute__((aligned(128)));
    local clgraph_fuse_type1_f_n clgraph_fuse_local1_f_n __attribute__((aligned(128)));
    clgraph_fuse_run1_f(clgraph_fuse_a0, clgraph_fuse_a1, &clgraph_fuse_local1_f_tile, &clgraph_fuse_local1_f_n, 1, 0, 0, 0, clgraph_fuse_a2, 1, 1, 4, 1, 1);
    clgraph_fuse_run1_g(clgraph_fuse_a0, 1, 0, 0, 0, clgraph_fuse_a2, 1, 1, 4, 1, 1);
    barrier(CLK_GLOBAL_MEM_FENCE);
    clgraph_fuse_run3_f(clgraph_fuse_a0, clgraph_fuse_a1, &clgraph_fuse_local1_f_tile, &clgraph_fuse_local1_f_n, 2, 0, 0, 0, clgraph_fuse_a2, 1, 1, 4, 1, 1);
    for (uint clgraph_fuse_turn = 0; clgraph_fuse_turn < 4; ++clgraph_fuse_turn) {
        clgraph_fuse_turn1_f(clgraph_fuse_a0, clgraph_fuse_a1, &clgraph_fuse_local1_f_tile, &clgraph_fuse_local1_f_n, 1, 0, 0, 0, clgraph_fuse_a2, 1, 1, 4, 1, 1);
    }
}
