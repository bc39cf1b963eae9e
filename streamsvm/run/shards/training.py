"""The one entrance: a model that is trained on the rows of many shards."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from streamsvm._parameter_checks import LARGEST_SIZE, check_positive, check_whole
from streamsvm.errors import ParameterError
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.monitor.watched import Model
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.parts import parts_of
from streamsvm.run.shards.job import Training
from streamsvm.run.shards.lasvm import LASVMTraining
from streamsvm.run.shards.linear import LinearTraining
from streamsvm.run.shards.report import Round, ShardsReport
from streamsvm.run.shards.workers import LocalWorkers

_KINDS: dict[type, Callable[..., Training]] = {
    LASVMClassifier: LASVMTraining,
    SVMSGDClassifier: LinearTraining,
}


def train_on_shards(
    model: Model,
    path: str | PathLike[str],
    target: str,
    *,
    gap: float = 1e-3,
    workers: LocalWorkers | None = None,
    shards: int | None = None,
    max_rounds: int = 1000,
    folder: str | PathLike[str] | None = None,
    on_round: Callable[[Round], None] = lambda made: None,
    **options: Any,
) -> tuple[Model, ShardsReport]:
    """Train one SVM on Parquet files that several workers read, to a measured gap.

    Parameters
    ----------
    model
        A `LASVMClassifier` with a given kernel, of two labels or more; or a `SVMSGDClassifier` with
        the hinge loss, of two labels. Alone or behind `StandardScaler`. It has learnt nothing, and
        is not changed.
    path, target
        A Parquet file or a folder of them, and the column of the label.
    gap
        Positive: rounds end when the objective is at most this share above a bound from below (of
        LASVM the dual): so it is at most this share above the lowest possible one.
    workers
        Who has the shards: `RayWorkers`; None, the default: this process.
    shards
        How many there are, of as many rows each; None, the default: each file is one.
    max_rounds
        At most so many; then the gap is that of the report. Kernels need a few, linear ones tens.
    folder
        Where what is needed to continue is kept: the same call goes on there after Ctrl-C, a crash,
        or with a smaller `gap`. None, the default: nothing is kept.
    on_round
        Called with each `Round`, as ``lambda made: print(f"gap {made.relative_gap:.1e}")``.
    **options
        As of `connectors.ParquetSource`: `columns`, `exclude`, `weight`, `keep`, `timestamp`,
        `parse_numbers`, `max_categories`, `batch_size`. Without `columns` and `exclude` all other
        columns are features: numbers of rows, times and further labels, too.

    Returns
    -------
    A trained model of the kind of `model`, which can be saved, and learns on; and a `ShardsReport`.

    Raises
    ------
    ParameterError, BadEventError, FeatureError, LabelError
        The model cannot be trained so; a row cannot be used: the message has file and number.
    CheckpointError, SourceError
        The folder is another training's, or damaged; a file is unlike the others, or has changed.

    Examples
    --------
    >>> from streamsvm import LASVMClassifier, kernels
    >>> from streamsvm.run.shards import train_on_shards
    >>> new = LASVMClassifier(kernels.RBF(gamma=0.5), C=1.0)
    >>> model, report = train_on_shards(new, "examples/data/bananas.parquet", "label", shards=4)
    >>> report.gap <= 1e-3
    True

    """
    wanted, most = (
        check_positive("gap", gap),
        check_whole("max_rounds", max_rounds, 1, LARGEST_SIZE),
    )
    if not callable(on_round):
        raise ParameterError(f"on_round={on_round!r}: use a function of a Round")
    scaler, learner = parts = parts_of(model)
    kind = _KINDS.get(type(learner))
    if kind is None or not isinstance(scaler, StandardScaler | None):
        raise ParameterError(
            "shards train a LASVMClassifier or a SVMSGDClassifier, alone or behind a StandardScaler"
        )
    training: Training = kind(parts, (Path(path), target, options), shards, workers, folder)
    try:
        for made in training.run(wanted, most):
            on_round(made)
        return training.conclude(wanted), training.report
    except KeyboardInterrupt:
        # Without the frames of Ray, which it came through.
        raise KeyboardInterrupt(training.interrupted) from None
    finally:
        training.workers.close()
