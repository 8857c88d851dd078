"""The wheel's command line is found here without having been imported, as its part for DTensor is."""

from __future__ import annotations

from torch_npu_lazy.wheel.references import lazily

lazily(globals(), {"run": "torch_npu.distributed.run"})
