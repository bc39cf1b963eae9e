"""A monitor's last record as Prometheus gauges, and counts of a run, by prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamsvm.monitor.figures import FIGURES, OF_RUN, meaning_of, shown_of
from streamsvm.monitor.record import Measuring


class Server:
    """A running metrics server, as `serve` returns it, on a `port`."""

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

    def __init__(self, monitor: Measuring, gauge: Any, counter: Any, figures: Any) -> None:
        self._monitor, self._gauge, self._counter = monitor, gauge, counter
        self._figures = figures

    def collect(self) -> Iterator[Any]:
        figures = dict(self._figures())
        values = shown_of(self._monitor.last(), self._monitor.covers)
        values |= {name: figures.pop(name) for name in FIGURES.keys() & figures}
        for name, value in values.items():
            if value is not None:
                yield self._gauge(f"streamsvm_{name.lower()}", meaning_of(name), value=value)
        # The dict is replaced as a whole, so that it is of one moment.
        bounds = self._monitor.score.recall_bounds
        for end in ("low", "high", "recent_low", "recent_high") if bounds else ():
            meaning = f"recall by label, {end.replace('_', ' ')} end of its interval"
            family = self._gauge(f"streamsvm_recall_{end}", meaning, labels=["label"])
            for label, of_label in bounds.items():
                family.add_metric([str(label)], getattr(of_label, end))
            yield family
        for name, value in figures.items():
            full, (meaning, *_, is_counter) = f"streamsvm_{name}", OF_RUN[name]
            make = self._counter if is_counter else self._gauge
            if isinstance(value, Mapping):
                family = make(full, meaning, labels=["kind" if is_counter else "partition"])
                for kind, n in value.items():
                    family.add_metric([kind], n)
                yield family
            elif value is not None:
                yield make(full, meaning, value=value)


def serve(
    monitor: Measuring, port: int, host: str, figures: Callable[[], Mapping[str, Any]] = dict
) -> Server:
    """Serve the last record of a `TrackingMonitor`: see its method.

    `figures` is called at each request: the values of `OF_RUN`, None for one that is not known.
    Those with the name of a value of the record take its place.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError as error:
        raise ImportError(
            "metrics need prometheus-client: pip install prometheus-client"
        ) from error
    registry = CollectorRegistry()
    collector: Any = _Collector(monitor, GaugeMetricFamily, CounterMetricFamily, figures)
    registry.register(collector)
    return Server(*start_http_server(port, addr=host, registry=registry))
