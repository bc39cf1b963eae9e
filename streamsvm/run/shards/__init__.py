"""One SVM trained on rows that several workers have: shards, rounds, and a measured gap."""

from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.run.shards.training import train_on_shards
from streamsvm.run.shards.workers import LocalWorkers, RayWorkers

__all__ = [
    "LocalWorkers",
    "RayWorkers",
    "Round",
    "ShardsReport",
    "train_on_shards",
]
