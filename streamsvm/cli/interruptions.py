"""Interruptions while the command is being imported: they end it at once."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

INTERRUPTED = "streamsvm: interrupted"


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
    """Exit on Ctrl-C with one line and code 130, for as long as nothing was done yet.

    As an exception it could be lost in the imports of C extensions, or come out as another one. A
    handler that somebody else has set stays.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: Any) -> None:
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(130)
