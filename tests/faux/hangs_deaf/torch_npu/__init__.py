"""Waits for ever and ignores every signal that it can."""

import signal
import threading

__version__ = "2.99.0"

for _number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(_number, signal.SIG_IGN)
threading.Event().wait()
