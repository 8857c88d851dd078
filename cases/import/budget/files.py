"""`import torch_npu` finds out the version of CANN without listing the whole of its installation.

A toolkit has tens of thousands of files, often on a network file system where listing a directory takes a round trip,
and every rank of a job imports at the same time. The version stands in a file near the top. What torch.version.cann
says must be right all the same; without an installation nothing else may be searched in its place.
"""

# /// script
# [tool.conformance]
# level = "should"
# matrix = { installation = ["named", "not_named"] }
# timeout = 60
# releases = ">=2.13"
# ///

import os
import sys
import tempfile
from pathlib import Path

from harness import probe

root = Path(tempfile.mkdtemp()).resolve()
named = probe.param("installation") == "named"
for number in range(100):
    (root / "tools" / f"part{number}" / "lib").mkdir(parents=True)
for directory in ("compiler", "runtime", "opp", "x86_64-linux"):
    (root / directory).mkdir()
(root / "x86_64-linux" / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=9.1.2\n")
if named:
    os.environ["ASCEND_HOME_PATH"], os.environ["ASCEND_OPP_PATH"] = str(root), str(root / "opp")
else:
    os.environ.pop("ASCEND_HOME_PATH", None)
    os.chdir(root)

listed = []
sys.addaudithook(
    lambda event, arguments: (
        listed.append(str(arguments[0])) if event in ("os.scandir", "os.listdir") and arguments else None
    )
)
import torch
import torch_npu

below = [path for path in listed if Path(path).resolve().is_relative_to(root)]
probe.note("directories_listed", len(below))
if named:
    probe.equal(torch.version.cann, "9.1.2", "torch.version.cann")
else:
    probe.equal(torch.version.cann, "not known", "torch.version.cann without ASCEND_HOME_PATH")
probe.check(len(below) < 20, "less than 20 of the 205 directories are listed", listed=len(below))
probe.device_untouched()
