// A kernel without parameters that does nothing, to measure the cost of a launch. It has its own file, because NVIDIA's
// compiler cannot report argument information for a program with such a kernel.
__kernel void nothing(void) {}
