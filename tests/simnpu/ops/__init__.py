"""The operator library against torch on the CPU: simnpu/csrc/ops."""
