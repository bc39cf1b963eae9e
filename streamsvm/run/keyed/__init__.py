"""A model per key: snapshots and logs of events in the state of a stream engine, by key."""

from streamsvm.run.keyed.quix import ModelPerKey

__all__ = ["ModelPerKey"]
