"""The simulated device's kernel toolchain: what triton-ascend calls to compile kernels."""
