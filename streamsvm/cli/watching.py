"""What is served while a run goes on: metrics for Prometheus, and the live page."""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from typing import Any

from streamsvm import TrackingMonitor
from streamsvm.cli.parser import whole
from streamsvm.errors import ParameterError
from streamsvm.page.live_page import LivePage
from streamsvm.run.runner import Run

_LOOK_SECONDS = 0.1
"""How often a page that waits looks for a signal."""


def address(text: str) -> tuple[str, int]:
    """Read ``PORT`` or ``HOST:PORT``; only this machine reaches the former.

    >>> from streamsvm.cli.watching import address
    >>> address("8000"), address("0.0.0.0:80"), address("[::1]:0")
    (('127.0.0.1', 8000), ('0.0.0.0', 80), ('::1', 0))
    """
    host, _, port = text.rpartition(":")
    if text.startswith(":"):
        raise argparse.ArgumentTypeError(f"{text!r}: use PORT or HOST:PORT")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", whole(0, 65_535)(port)


WATCHING: dict[str, Any] = {
    "--metrics-port PORT": dict(
        type=whole(0, 65_535),
        help="serve the monitor's figures to Prometheus on this port (0: a free one)",
    ),
    "--metrics-host ADDRESS": dict(
        default="127.0.0.1",
        help="the address that --metrics-port listens on; default 127.0.0.1, which only this "
        "machine reaches; 0.0.0.0: all machines, without any password",
    ),
    "--page PORT": dict(
        type=address,
        help="serve a page with charts that renew themselves, on this port (0: a free one) of this "
        "machine, or on HOST:PORT; there is no password",
    ),
    "--page-wait": dict(
        action="store_true", help="keep the page after the report, until Ctrl-C or SIGTERM"
    ),
    "--page-values": dict(
        action="store_true",
        help="show values of events on the page, too: why events could not be used, and some "
        "support vectors of two features",
    ),
}
"""The options of both."""


def check(options: argparse.Namespace) -> None:
    """Refuse options of a page that there is not."""
    for name in ("page_wait", "page_values"):
        if options.page is None and getattr(options, name):
            raise ParameterError(f"--{name.replace('_', '-')} needs --page PORT")


def serve_metrics(
    options: argparse.Namespace, monitor: TrackingMonitor, run: Run, stack: ExitStack
) -> str:
    """Serve metrics until the end of the stack; return what to say."""
    host, port = options.metrics_host, options.metrics_port
    try:
        server = monitor.serve(port, host, run.figures)
    except ImportError as error:
        raise ParameterError(f"--metrics-port: {error}") from error
    except OSError as error:
        raise OSError(f"--metrics-port {port} of {host}: {error.strerror}") from error
    stack.enter_context(closing(server))
    return f"metrics: http://{host}:{server.port}/metrics"


def serve_page(
    options: argparse.Namespace, monitor: TrackingMonitor, run: Run, title: str, stack: ExitStack
) -> LivePage:
    """Serve the live page of a run until the end of the stack."""
    host, port = options.page
    figures = partial(run.details, options.page_values)
    settings: dict[str, Any] = {"title": title, "history": run.report.history, "figures": figures}
    try:
        page = LivePage(monitor, port, host, values=options.page_values, **settings)
    except OSError as error:
        raise OSError(f"--page: {error.strerror}") from error
    return stack.enter_context(page)


@contextmanager
def until_left(
    page: LivePage | None, waits: bool, signals: Callable[[], AbstractContextManager[list[int]]]
) -> Iterator[None]:
    """Keep the page, if there is one and it `waits`, until a signal."""
    yield
    if page is not None and waits:
        with signals() as received:
            while not received:
                time.sleep(_LOOK_SECONDS)
