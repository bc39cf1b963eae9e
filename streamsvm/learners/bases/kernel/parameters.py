"""What all kernel learners are given, as one."""

from typing import NamedTuple

from streamsvm.selection.strategies import Selection


class KernelParameters(NamedTuple):
    """The parameters of all kernel learners: see `LASVMClassifier`."""

    sparse: bool | None
    hashing: int | None
    max_features: int
    missing: str
    cache_mb: float | None
    n_jobs: int | None
    selection: Selection | None
