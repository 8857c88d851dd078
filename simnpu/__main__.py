"""The simulator's command line: run a program on the simulated NPU, build the libraries, see what is missing.

`python -m simnpu --help` explains the commands.
"""

from __future__ import annotations

import sys

from simnpu.cli import main

if __name__ == "__main__":
    sys.exit(main())
