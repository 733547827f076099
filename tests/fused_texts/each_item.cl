#line 1
kernel void none() {}
kernel void f(global const int *s, global int *t, int by) { t[get_global_id(0)] = s[0] + by; }
__attribute__((always_inline)) void clgraph_fuse_item_f(global const int * s , global int * t , int by) { t[get_global_id(0)] = s[0] + by; }
__attribute__((always_inline)) void clgraph_fuse_item_none(void) {}
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, global void *clgraph_fuse_a1, int clgraph_fuse_a2, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    clgraph_fuse_item_f(clgraph_fuse_a0, clgraph_fuse_a1, clgraph_fuse_a2);
    clgraph_fuse_item_none();
    clgraph_fuse_item_f(clgraph_fuse_a1, clgraph_fuse_a0, clgraph_fuse_a2);
}
