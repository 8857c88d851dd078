"""Is killed as the kernel kills what takes too much memory."""

import os
import signal

__version__ = "2.99.0"

os.kill(os.getpid(), signal.SIGKILL)
