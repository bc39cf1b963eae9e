"""The methods of a monitor that present its values: tables, plots and Prometheus metrics.

Rich, matplotlib and prometheus-client are imported by the methods that use them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any


class Presentation(ABC):
    """Base of `TrackingMonitor`: tables, plots and metrics of its records."""

    @abstractmethod
    def get(self) -> dict[str, Any]:
        """Return the current values by name."""

    def report(self) -> str:
        """Return the current values as a readable table, with the meaning of each.

        Returns
        -------
        str
            The table, 120 columns wide.

        """
        from streamsvm.monitor.report import text

        return text(self)

    def panel(self) -> Any:
        """Return the current values as a table for Rich.

        Returns
        -------
        rich.table.Table
            A renderable.

        """
        from streamsvm.monitor.report import panel

        return panel(self, self.get())

    def live(self) -> Any:
        """Return a context in which the table of the last record is shown and kept up to date.

        Returns
        -------
        rich.live.Live
            The context.

        """
        from streamsvm.monitor.report import live

        return live(self)

    def plot(self, folder: str | Path) -> list[Path]:
        """Write PNG plots of the history.

        Parameters
        ----------
        folder
            Where to; it is made if it does not exist.

        Returns
        -------
        list[Path]
            The paths of the files.

        Raises
        ------
        ImportError
            matplotlib is not installed; the message has the pip line.

        """
        from streamsvm.monitor.plots import write

        return write(self, Path(folder))

    def serve(self, port: int, host: str = "127.0.0.1") -> Any:
        """Serve the last record as Prometheus gauges on http://host:port/metrics.

        Parameters
        ----------
        port
            The port; 0 takes a free one.
        host
            The address to listen on.

        Returns
        -------
        Server
            An object with ``close()`` and ``port``.

        Raises
        ------
        ImportError
            prometheus-client is not installed; the message has the pip line.

        """
        from streamsvm.monitor.prometheus import serve

        return serve(self, port, host)
