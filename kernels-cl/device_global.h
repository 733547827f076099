// How OpenCL C reaches clgraph's device globals. clgraph puts this text before the source of every program that lists some
// (`ProgramBuilder::global`), with definitions for each: the same source works with every way by which a device has them.
//
//     CLG_DEVICE_GLOBAL(uint, hits);                      // declares it: its type, and the name that the program lists
//     CLG_DEVICE_GLOBAL_ARRAY(float, weights, [4][16]);   // the same of an array
//
//     // Functions that use one take CLG_PARAMS behind their own parameters, and pass CLG_ARGS on to others that do.
//     uint hit(uint by CLG_PARAMS) { return atomic_add(&CLG_GLOBAL(hits), by); }
//
//     kernel void count(global const float *in CLG_PARAMS) {
//         if (in[get_global_id(0)] < CLG_GLOBAL(weights)[0][3]) hit(1 CLG_ARGS);
//     }
//
//     // Without parameters of their own: CLG_ONLY_PARAMS and CLG_ONLY_ARGS.
//     kernel void reset(CLG_ONLY_PARAMS) { CLG_GLOBAL(hits) = 0; }
//
// CLG_GLOBAL(name) is the variable itself, in global memory: it can be assigned, its address taken and stored, its elements
// and members used, and atomics work on it. Globals may be declared again, in the same way. A function that uses one, or calls
// one that does, needs CLG_PARAMS on every device; where the program has pointers a compiler does not miss it, so try with
// CLGRAPH_GLOBALS=argument.

// Declared again, a type is the same.
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
