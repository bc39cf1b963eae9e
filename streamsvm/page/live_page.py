"""The server of the live page, by the standard library: it shows, and takes no orders."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import socket
import sys
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from streamsvm.errors import ParameterError
from streamsvm.monitor.history import History
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.page.sections import Sections
from streamsvm.page.skeleton import page

_log = logging.getLogger(__name__)

_SHORTEST = 1.0
"""Seconds between two drawings, at least."""

_SHARE = 200
"""Between two drawings is this many times the processor time that the last one took."""

_HEARTBEAT = 15.0
_MOST_VIEWERS = 50
_STALLED_SECONDS = 10.0
_UNREAD_SECONDS = 5.0
_AT_ONCE = 16_384
"""A viewer that takes not so many bytes in so many seconds has lost its place."""

_GOODBYE_SECONDS = 2.0

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OF_LATE = "of=late"
_PATIENCE = 2.0  # seconds that a page waits for its first figures
_BUSY = {"state": "figures follow: the model is at work, or compiled"}
_FILES = {"/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8"}


class LivePage:
    """A page with charts and tables of a monitor, which renews itself in all browsers open on it.

    It is drawn only while somebody looks, once for all viewers, and so seldom that it takes at most
    half a percent of one processor's time (one, if some look at the latest records only). It is
    closed at the end of a ``with``, or by `close`.

    Parameters
    ----------
    monitor
        The `TrackingMonitor`. It may go on learning in another thread.
    port
        The port; 0 takes a free one.
    host
        The address to listen on; by default only this machine reaches it. There is no password.
    title
        The heading of the page.
    values
        Show values of events, too: some support vectors, if there are two features.
    figures
        Called at each drawing: counts of a run beside the record, by the names of
        `streamsvm.monitor.figures.OF_RUN`.
    history
        The history of a run; its `report.history`.

    Raises
    ------
    ParameterError
        There is no such port, or the host is empty.
    OSError
        The port is in use, or the address is not one of this machine.

    Examples
    --------
    >>> import urllib.request
    >>> from river import datasets
    >>> from streamsvm import LASVMClassifier, LivePage, TrackingMonitor
    >>> monitor = TrackingMonitor(LASVMClassifier())
    >>> with LivePage(monitor, port=0) as page:  # port=8000, and look at page.url in a browser
    ...     for x, y in datasets.Phishing():
    ...         monitor.learn_one(x, y)
    ...     text = urllib.request.urlopen(page.url).read().decode()
    >>> "Confusion matrix and recall" in text
    True

    """

    def __init__(
        self,
        monitor: TrackingMonitor,
        port: int,
        host: str = "127.0.0.1",
        *,
        title: str = "A stream",
        values: bool = False,
        figures: Callable[[], Mapping[str, Any]] = dict,
        history: History | None = None,
    ) -> None:
        _check(port, host)
        if not hasattr(monitor, "learner"):
            raise ParameterError(
                f"{type(monitor).__name__} is no monitor: use a TrackingMonitor of it"
            )
        self._title, self._learner = title, type(monitor.learner).__name__
        self._made = Sections(monitor, figures, history, values)
        self._lock = threading.Lock()
        self._leaving = threading.Condition()
        self._views = {False: _View(), True: _View()}  # of late: the second
        self._drawing: dict[bool, threading.Thread] = {}  # for a page, not for its events
        self.closing = threading.Event()
        self.n_viewers = 0
        try:
            self._server = _Server(host, port, self)
        except OSError as error:
            raise OSError(error.errno, f"port {port} of {host}: {error.strerror}") from error
        self.port: int = self._server.server_port
        self.hosts = _names_of(host)
        self._process = os.getpid()
        _open.add(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="streamsvm page", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        host = str(self._server.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def parts(self, of_late: bool = False) -> dict[str, str]:
        """Return the changing parts of the page as HTML by id; drawn anew if that is due."""
        view = self._views[of_late]
        with self._lock:
            if time.monotonic() >= view.due or view.state != self._made.state:
                view.state = self._made.state  # before the parts, which may be of a later one
                before = time.thread_time()
                try:
                    view.parts = self._made.made(of_late)
                finally:
                    spent = time.thread_time() - before + view.sending
                    view.sending = 0.0
                    view.due = time.monotonic() + max(_SHORTEST, _SHARE * spent)
            return view.parts

    def whole(self, of_late: bool) -> str:
        """Return the page as it is now, which needs no scripts.

        While the model is held, as when it compiles for minutes, the page comes with the figures
        that were drawn last, or with none.
        """
        drawing = self._drawing.get(of_late)
        if drawing is None or not drawing.is_alive():
            drawing = threading.Thread(target=self._draw, args=(of_late,), daemon=True)
            self._drawing[of_late] = drawing
            drawing.start()
        drawing.join(_PATIENCE)
        parts = self._views[of_late].parts or _BUSY
        return page(self._title, self._learner, defaultdict(str, parts), of_late)

    def _draw(self, of_late: bool) -> None:
        try:
            self.parts(of_late)
        except Exception:
            _log.warning("the live page: it could not be drawn", exc_info=True)

    def sent(self, seconds: float, of_late: bool) -> None:
        """Count processor time of sending: with many viewers the page is drawn less often."""
        with self._lock:
            self._views[of_late].sending += seconds

    def enter(self) -> bool:
        """Count one more viewer; False: there are too many."""
        with self._leaving:
            if self.n_viewers >= _MOST_VIEWERS:
                return False
            self.n_viewers += 1
            return True

    def leave(self) -> None:
        """Count one viewer less."""
        with self._leaving:
            self.n_viewers -= 1
            self._leaving.notify_all()

    def until_due(self, of_late: bool) -> float:
        """Return in how many seconds the next drawing is due."""
        return min(_HEARTBEAT, max(0.05, self._views[of_late].due - time.monotonic()))

    def say(self, state: str) -> None:
        """Show the state of the run in words, and all figures, at once."""
        if os.getpid() != self._process:
            return  # a lock may be held for ever
        with self._lock:
            self._made.said = state
            for view in self._views.values():
                view.due = 0.0

    def close(self) -> None:
        """Send the last figures to all viewers, stop serving, and free the port.

        A process that was forked from the one that serves has nothing to close.
        """
        if os.getpid() != self._process:
            return
        self.say("ended")
        self.closing.set()
        with self._leaving:
            # A viewer that does not read its figures must not hold the run.
            self._leaving.wait_for(lambda: self.n_viewers == 0, _GOODBYE_SECONDS)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def leave_to_parent(self) -> None:
        """Free the port in a process that was just forked, in which nothing serves."""
        self._server.socket.close()

    def __enter__(self) -> LivePage:
        """Return the page."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the page."""
        self.close()


@dataclass
class _View:
    """What all who look at the same charts are sent."""

    parts: dict[str, str] = field(default_factory=dict)
    due: float = 0.0  # when it is drawn again, unless the state changes before
    state: str = ""
    sending: float = 0.0  # seconds of processor time since it was drawn


class _Server(ThreadingHTTPServer):
    """The server of one page; a thread for each viewer."""

    daemon_threads = True

    def __init__(self, host: str, port: int, live: LivePage) -> None:
        self.live = live
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what is not just a viewer that has gone."""
        if not isinstance(sys.exception(), OSError):
            _log.warning("the live page: a viewer was not answered", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the server's class refuses all else."""

    server: _Server
    server_version, sys_version = "streamsvm", ""
    timeout = _STALLED_SECONDS

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        live, of_late = self.server.live, query == _OF_LATE
        if live.hosts is not None and self._host() not in live.hosts:
            # Another site may have given its name this address, to read the page in a browser.
            self.send_error(421, "Misdirected Request")
        elif path == "/":
            self._send(live.whole(of_late).encode(errors="replace"), "text/html; charset=utf-8")
        elif path in _FILES:
            content = files("streamsvm.page").joinpath(path[1:]).read_bytes()
            self._send(content, _FILES[path])
        elif path == "/events" and self.command == "GET":
            self._stream(live, of_late)
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def end_headers(self) -> None:
        """Add what browsers are told with each answer."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def _host(self) -> str:
        host = self.headers.get("Host", "")
        return (host[: host.find("]") + 1] if host[:1] == "[" else host.partition(":")[0]).lower()

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def _stream(self, live: LivePage, of_late: bool) -> None:
        """Send the parts that have changed, until the viewer goes or the page is closed."""
        if not live.enter():
            self.send_error(503, "Too many viewers")
            return
        try:
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                # What is not read must not wait in large buffers, where it is not noticed.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _AT_ONCE)
                self.connection.settimeout(_UNREAD_SECONDS)
                self._send_changes(live, of_late)
        finally:
            live.leave()

    def _send_changes(self, live: LivePage, of_late: bool) -> None:
        known: Mapping[str, str] = {}
        spoken = time.monotonic()
        is_over = False
        while True:
            parts, before = live.parts(of_late), time.thread_time()
            changed = {name: text for name, text in parts.items() if known.get(name) != text}
            if changed:
                self._write(f"event: parts\ndata: {json.dumps(changed)}\n\n")
                live.sent(time.thread_time() - before, of_late)
                spoken = time.monotonic()
            elif time.monotonic() - spoken >= _HEARTBEAT:
                self._write(": still here\n\n")
                spoken = time.monotonic()
            known = parts
            if is_over:
                self._write("event: end\ndata: \n\n")
                return
            is_over = live.closing.wait(live.until_due(of_late))

    def _write(self, text: str) -> None:
        content = text.encode()
        for start in range(0, len(content), _AT_ONCE):
            self.wfile.write(content[start : start + _AT_ONCE])


def _check(port: int, host: str) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65_536:
        raise ParameterError(f"port={port!r}: use a whole number from 0 to 65535")
    if not isinstance(host, str) or not host:
        raise ParameterError(f"host={host!r}: name an address; 0.0.0.0 is all of this machine")


def _names_of(host: str) -> set[str] | None:
    """Return the names by which browsers may call a loopback address; None: any name."""
    with contextlib.suppress(ValueError):
        if not ipaddress.ip_address(host).is_loopback:
            return None
        return {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}
    return {"localhost", "127.0.0.1"} if host == "localhost" else None


_open: weakref.WeakSet[LivePage] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for live in list(_open):
        live.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)
