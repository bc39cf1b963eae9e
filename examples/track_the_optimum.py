"""You learn how to watch the distance from the batch optimum: as a table, as a file, as plots.

Writes monitor.parquet, and gap.png and other plots in the folder ``tracking``.
"""

from pathlib import Path

from connectors import ParquetSource
from streamsvm import Run, StandardScaler, TrackingMonitor, TrackingSVMClassifier

FILE = Path(__file__).parent / "data" / "bananas.parquet"


def main() -> None:
    model = StandardScaler() | TrackingSVMClassifier(K=10, seed=1)
    monitor = TrackingMonitor(model, every=100)
    with ParquetSource(FILE, target="label", shuffle_buffer=2000, seed=1) as source:
        Run(source, monitor).execute()
    print(monitor.report())
    monitor.history.write_parquet("monitor.parquet")
    print(*monitor.plot("tracking"))


if __name__ == "__main__":
    main()
