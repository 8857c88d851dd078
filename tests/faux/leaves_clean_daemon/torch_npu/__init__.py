"""Leaves a daemon behind that has closed its files, changed its session and emptied its environment."""

import os
import sys

__version__ = "2.99.0"

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)"], {})
    os._exit(0)
os.wait()
