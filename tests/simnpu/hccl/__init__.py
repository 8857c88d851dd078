"""Collectives between processes: simnpu/csrc/hccl."""
