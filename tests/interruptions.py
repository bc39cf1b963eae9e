"""KeyboardInterrupt at a chosen line, as Ctrl-C may bring it; and where Ctrl-C does nothing."""

import signal
import sys

import pytest

needs_ctrl_c = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    reason="SIGINT is ignored from the start, as in the background under nohup",
)


def ignore_ctrl_c():
    """Do in a new process what a shell does for one in the background: its `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def interrupted(do, at, is_traced):
    """Do something, and interrupt it at line number `at`; return whether it came so far.

    Lines are counted in the code objects that `is_traced` takes.
    """
    left = at

    def trace(frame, event, argument):
        nonlocal left
        if not is_traced(frame.f_code):
            return None
        left -= event == "line"
        if left == 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        do()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
