"""What the command lines print, for whoever reads it. The simulator has a copy: the parts share no code, so that each
can be deleted."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def for_anybody() -> Iterator[None]:
    """While it lasts, a character that the terminal's encoding lacks is printed as an escape. A reader who has seen
    enough (`| head`) ends the command without a word, with what a shell answers for SIGPIPE; Ctrl-C ends it by its
    signal, with one line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer goes nowhere: the interpreter would complain of the pipe once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        # Ended by the signal, so that a shell's loop around the command ends as well.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
