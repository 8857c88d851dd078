"""Names that the package lists as public and leaves to its subpackage."""

from torch_npu.contrib.function import fuse_add_softmax_dropout as fuse_add_softmax_dropout
