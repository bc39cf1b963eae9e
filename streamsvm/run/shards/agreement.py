"""What shards agree on before they learn: features, labels, costs, scale, and the kind of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.errors import LabelError
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.shards.exchange import Setting, ShardSummary
from streamsvm.support.density import FEWEST_FEATURES, LARGEST_SHARE


def setting_of(
    summaries: list[ShardSummary], learner: Any, scaler: StandardScaler | None, C: float
) -> Setting:
    """Return what all shards agree on, from what each has told; C is that of a sum of losses."""
    names = list(dict.fromkeys(name for own in summaries for name in own.names))
    counts: dict[Any, int] = {}
    weighted: dict[Any, int] = {}
    for own in summaries:
        for label, n, n_weighted in own.counts:
            counts[label] = counts.get(label, 0) + n
            weighted[label] = weighted.get(label, 0) + n_weighted
    if len(counts) < 2:
        raise LabelError(f"all rows have one label: {list(counts)}")
    most = getattr(learner.targets.labels, "most", None)
    if most is not None and len(counts) > most:
        raise LabelError(
            f"{len(counts):,} labels, and the model takes {most}: is the label a class? If so, "
            "raise max_classes"
        )
    n_rows = sum(own.n_rows for own in summaries)
    weights = learner.class_weight
    if weights == "balanced":
        weights = {label: n_rows / (len(counts) * n) for label, n in counts.items()}
    is_sparse = learner.sparse
    if is_sparse is None:
        share = sum(own.n_nonzero for own in summaries) / max(1, n_rows * len(names))
        is_few = len(names) >= FEWEST_FEATURES and share <= LARGEST_SHARE
        is_sparse = any(own.is_sparse for own in summaries) or is_few
    own_learner = learner.clone({"class_weight": weights, "sparse": is_sparse})
    factors = [1.0 if weights is None else float(weights.get(label, 1.0)) for label in counts]
    counting = [y for y, factor in zip(counts, factors, strict=True) if factor and weighted[y]]
    if len(counting) < 2:
        raise LabelError(f"only rows of {counting} have a weight and a class weight above 0")
    united = None if scaler is None else scaler.clone()
    for own in summaries:
        if united is not None and own.scaler is not None:
            united.merge(own.scaler)
    return Setting(names, list(counts), C * np.array(factors), is_sparse, own_learner, united)
