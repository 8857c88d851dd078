"""pytest never imports a case.

Importing this file outside of a fresh interpreter raises.
"""

# /// script
# [tool.conformance]
# level = "must"
# ///

import os
import sys
from pathlib import Path

from harness import probe

if "pytest" in sys.modules:
    raise AssertionError("pytest has imported a case")
probe.check("PYTEST_CURRENT_TEST" not in os.environ, "nothing of pytest's environment reaches a case")
probe.equal(Path.cwd().resolve().parent, Path(os.environ["TMPDIR"]).resolve().parent, "place of the working directory")
