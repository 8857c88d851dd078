"""An output that is used after a later step has taken its memory raises an error that says what to do.

The memory of a step's outputs belongs to the next step. Reading them then must not give numbers of nobody: while the
backend warms up and records, each access raises, naming the line that made the tensor and the ways out, as torch does
for CUDA. The outputs of the current step, and clones of old ones, stay right.
"""

# /// script
# [tool.conformance]
# level = "must"
# needs = ["ops", "graph"]
# timeout = 120
# releases = ">=2.12"  # before, torch's own backend takes each inference for a forward pass of training, too
# ///

import torch
import torch_npu
from harness import probe


def step(x):
    return x * 2 + 1


MESSAGE = "overwritten by a subsequent run"
USES = {
    "cpu": lambda tensor: tensor.cpu(),
    "add": lambda tensor: tensor + 1,
    "item": lambda tensor: tensor[0].item(),
    "repr": repr,
    "view": lambda tensor: tensor.view(1, 3),
    "clone": lambda tensor: tensor.clone(),
    "data_ptr": lambda tensor: tensor.data_ptr(),
    "storage": lambda tensor: tensor.untyped_storage().data_ptr(),
    "copy_": lambda tensor: tensor.copy_(torch.zeros(3)),
    "copy from": lambda tensor: torch.empty(3, device="npu").copy_(tensor),
    "compiled call": torch.compile(step, backend="eager"),
}
for marked in (False, True):
    torch.compiler.reset()
    compiled = torch.compile(step, backend="npugraphs", fullgraph=True)
    kept, clones, slices = [], [], []
    for number in range(5):
        if marked:
            torch.compiler.npugraph_mark_step_begin()
        result = compiled(torch.full((3,), float(number)).npu())
        probe.close(result, step(torch.full((3,), float(number))), f"output of step {number}, used in its own step")
        kept.append(result)
        clones.append(result.clone())
        slices.append(result[1:])
        # Step 0 warmed up and step 1 recorded: the next step took their memory away.
        for old in range(min(number, 2)):
            for use in USES.values():
                with probe.raises(RuntimeError, MESSAGE) as caught:
                    use(kept[old])
            message = str(caught.value)
            ways_out = ("clone", "npugraph_mark_step_begin()", "in step")
            missing = [way for way in ways_out if way not in message]
            probe.equal(missing, [], "what the message leaves out (ways out, function that made the tensor)")
            with probe.raises(RuntimeError, MESSAGE):
                slices[old].cpu()
            probe.equal(tuple(kept[old].shape), (3,), "shape of the old output, which is no access")
    for number, clone in enumerate(clones):
        probe.close(clone, step(torch.full((3,), float(number))), f"clone of the output of step {number}")
