"""The end of `import torch_npu`, where a release does not do it."""

import torch_npu as _this

# Child processes inherit the variable: it has to say what the user had said.
_this._autoload()
