"""Devices, memory, streams, events, graphs, kernels and the record of calls: simnpu/csrc/runtime."""
