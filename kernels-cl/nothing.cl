// A kernel without parameters that does nothing: what is left is the cost of launching it. In a file of its own, because
// NVIDIA's compiler takes no argument information of a program with such a kernel.
__kernel void nothing(void) {}
