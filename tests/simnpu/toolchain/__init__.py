"""What compiles kernels and their launchers: simnpu/toolchain."""
