"""Compiling for the simulated NPU through the whole stack: triton-ascend and Inductor, by the simulator's compilers."""
