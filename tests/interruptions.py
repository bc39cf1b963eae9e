"""KeyboardInterrupt at a chosen line, as Ctrl-C may bring it."""

import sys


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
