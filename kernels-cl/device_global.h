// The macros by which OpenCL C uses clgraph's device globals. clgraph puts this text before the source of every program
// that lists device globals (`ProgramBuilder::global`), with definitions for each of them. So the same source works
// with every access method.
//
//     CLG_DEVICE_GLOBAL(uint, hits);                      // declares a variable: its type and its listed name
//     CLG_DEVICE_GLOBAL_ARRAY(float, weights, [4][16]);   // declares an array
//
//     // A function that uses device globals takes CLG_PARAMS after its own parameters. Its callers pass CLG_ARGS.
//     uint hit(uint by CLG_PARAMS) { return atomic_add(&CLG_GLOBAL(hits), by); }
//
//     kernel void count(global const float *in CLG_PARAMS) {
//         if (in[get_global_id(0)] < CLG_GLOBAL(weights)[0][3]) hit(1 CLG_ARGS);
//     }
//
//     // Without other parameters: CLG_ONLY_PARAMS and CLG_ONLY_ARGS.
//     kernel void reset(CLG_ONLY_PARAMS) { CLG_GLOBAL(hits) = 0; }
//
// CLG_GLOBAL(name) is the variable itself, in global memory. It can be assigned, its address can be taken and stored,
// its elements and members can be used, and atomics work on it. The same declaration may appear several times.
//
// A function that uses a device global, or calls a function that does, needs CLG_PARAMS. If the program has pointers,
// compilers do not detect a missing CLG_PARAMS, so test the program with CLGRAPH_GLOBALS=argument too.

// A repeated declaration repeats its typedefs.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wtypedef-redefinition"
#pragma clang diagnostic ignored "-Wc11-extensions"
#endif

#define CLG_DEVICE_GLOBAL(type, name)                                                                                    \
    typedef type clgraph_type_##name;                                                                                    \
    typedef char clgraph_size_of_##name##_differs[sizeof(clgraph_type_##name) == CLGRAPH_SIZE_##name ? 1 : CLGRAPH_WRONG]; \
    CLGRAPH_DECLARE_##name
#define CLG_DEVICE_GLOBAL_ARRAY(type, name, extents)                                                                     \
    typedef type clgraph_type_##name extents;                                                                            \
    typedef char clgraph_size_of_##name##_differs[sizeof(clgraph_type_##name) == CLGRAPH_SIZE_##name ? 1 : CLGRAPH_WRONG]; \
    CLGRAPH_DECLARE_##name
#define CLG_GLOBAL(name) (CLGRAPH_LVALUE_##name)
