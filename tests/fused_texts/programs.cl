#pragma push_macro("N")
#pragma push_macro("real")
#pragma push_macro("twice")
#ifdef N
#error the compiler has a macro N
#endif
#ifdef real
#error the compiler has a macro real
#endif
#undef N
#define N 3
#undef real
#define real float
#undef twice
#define twice clgraph_fuse_1_twice
#line 1
float twice(float x) { return x * N; }
kernel void f(global float *x, real by) { x[0] = twice(by); }

typedef real clgraph_fuse_type0;
__attribute__((always_inline)) void clgraph_fuse_item_f(global float * x , real by) { x[0] = twice(by); }
#pragma pop_macro("N")
#pragma pop_macro("real")
#pragma pop_macro("twice")
#pragma push_macro("N")
#pragma push_macro("twice")
#undef twice
#define twice clgraph_fuse_2_twice
#line 1
#define N 7
int twice(int x) { return x + N; }
kernel void g(global float *x) { x[1] = twice(2); }

__attribute__((always_inline)) void clgraph_fuse_item_2_g(global float * x) { x[1] = twice(2); }
#pragma pop_macro("N")
#pragma pop_macro("twice")
#line 1
kernel void h(global float *x) { x[2] = 1; }

__attribute__((always_inline)) void clgraph_fuse_item_3_h(global float * x) { x[2] = 1; }
kernel void clgraph_fused_0(global void *clgraph_fuse_a0, clgraph_fuse_type0 clgraph_fuse_a1, const uint clgraph_fuse_go) {
    if (clgraph_fuse_go == 0) return;
    clgraph_fuse_item_f(clgraph_fuse_a0, clgraph_fuse_a1);
    clgraph_fuse_item_2_g(clgraph_fuse_a0);
    clgraph_fuse_item_3_h(clgraph_fuse_a0);
}
