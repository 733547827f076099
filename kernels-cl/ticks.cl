// A kernel with a device global, for SPIR-V programs. ticks_pointer.spv and ticks_argument.spv are made from this file.
// Their source is the text that `ProgramBuilder::source_text` returns: for the first with a pointer that a kernel sets,
// for the second with a hidden argument.
//   clang -cl-std=CL3.0 -target spir64 -Xclang -finclude-default-header -cl-kernel-arg-info -fno-discard-value-names -O1
//     -emit-llvm -c TEXT.cl -o ticks.bc
//   llvm-spirv --spirv-max-version=1.0 ticks.bc -o ticks_....spv
// In ticks_pointer.spv, `by` is then multiplied by a specialization constant (SpecId 7, default 1), because OpenCL C
// has no specialization constants.

CLG_DEVICE_GLOBAL(uint, total);

uint add(uint by CLG_PARAMS) { return CLG_GLOBAL(total) += by; }

kernel void tick(global uint *out, uint by CLG_PARAMS) { out[0] = add(by CLG_ARGS); }
