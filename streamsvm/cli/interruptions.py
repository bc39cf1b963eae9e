"""Signals that end the command: at once while it is being imported, as Ctrl-C does afterwards."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

INTERRUPTED = "streamsvm: interrupted"

_Handler = Callable[[int, FrameType | None], Any]


def leaving_at_once() -> contextlib.AbstractContextManager[None]:
    """Exit on Ctrl-C with one line and code 130, for as long as nothing was done yet.

    As an exception it could be lost in the imports of C extensions, or come out as another one.
    """
    return _handled((signal.SIGINT, signal.SIGTERM), signal.default_int_handler, _leave)


def interrupted_by_sigterm() -> contextlib.AbstractContextManager[None]:
    """Let SIGTERM interrupt as Ctrl-C does: where that is ignored from the start, it is all."""
    return _handled((signal.SIGTERM,), signal.SIG_DFL, signal.default_int_handler)


@contextlib.contextmanager
def _handled(numbers: tuple[int, ...], before: Any, handler: _Handler) -> Iterator[None]:
    """Handle the signals that have the handler `before`; those that somebody else has set stay."""
    is_main = threading.current_thread() is threading.main_thread()
    ours = [n for n in numbers if is_main and signal.getsignal(n) is before]
    for n in ours:
        signal.signal(n, handler)
    try:
        yield
    finally:
        for n in ours:
            signal.signal(n, before)


def _leave(*_: Any) -> None:
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(130)
