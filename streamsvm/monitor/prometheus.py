"""A monitor's last record as Prometheus gauges, through prometheus-client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamsvm.monitor.report import MEANINGS


class Server:
    """A running metrics server, as `serve` returns it.

    Attributes
    ----------
    port
        The port that it listens on.

    """

    def __init__(self, server: Any, thread: Any) -> None:
        self._server, self._thread = server, thread
        self.port: int = server.server_port

    def close(self) -> None:
        """Stop serving, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """Turns the last record into gauges at each request, without measuring anew."""

    def __init__(self, monitor: Any, gauge: Any) -> None:
        self._monitor, self._gauge = monitor, gauge

    def collect(self) -> Iterator[Any]:
        for name, value in self._monitor.last().items():
            if value is not None:
                yield self._gauge(
                    f"streamsvm_{name.lower()}", MEANINGS.get(name, "metric"), value=value
                )


def serve(monitor: Any, port: int, host: str) -> Server:
    """Serve the last record of a monitor on http://host:port/metrics.

    Parameters
    ----------
    monitor
        A `TrackingMonitor`.
    port
        The port; 0 takes a free one.
    host
        The address to listen on.

    Returns
    -------
    Server
        The running server.

    Raises
    ------
    ImportError
        prometheus-client is not installed.

    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import GaugeMetricFamily
    except ImportError as error:
        raise ImportError(
            "metrics need prometheus-client: pip install prometheus-client"
        ) from error
    registry = CollectorRegistry()
    registry.register(_Collector(monitor, GaugeMetricFamily))  # type: ignore[arg-type]
    return Server(*start_http_server(port, addr=host, registry=registry))
