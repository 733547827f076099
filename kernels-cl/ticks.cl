// A kernel with a device global, for programs of SPIR-V: ticks_pointer.spv and ticks_argument.spv are made of this, by the text
// that `ProgramBuilder::source_text` gives where the program has a pointer that a kernel sets, and for a hidden argument:
//   clang -cl-std=CL3.0 -target spir64 -Xclang -finclude-default-header -cl-kernel-arg-info -fno-discard-value-names -O1
//     -emit-llvm -c TEXT.cl -o ticks.bc
//   llvm-spirv --spirv-max-version=1.0 ticks.bc -o ticks_....spv
// In the one with a pointer `by` is then multiplied by a specialization constant (SpecId 7, 1 unless it is set), which OpenCL C
// does not have.

CLG_DEVICE_GLOBAL(uint, total);

uint add(uint by CLG_PARAMS) { return CLG_GLOBAL(total) += by; }

kernel void tick(global uint *out, uint by CLG_PARAMS) { out[0] = add(by CLG_ARGS); }
