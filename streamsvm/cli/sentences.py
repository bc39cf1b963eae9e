"""Sentences in the command: their files, and the labels that a model predicts for them."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from connectors import ConllSource, SentenceSource, SourceNotFoundError
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.preprocessing.chain import Chain
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.sentence_feeder import SentenceFeeder, are_sentences
from streamsvm.structured.chunks import ChunkScore

_OF_ROWS = ("exclude", "weight", "parse_numbers", "positive", "timestamp", "speed", "key",
            "labels_topic", "label_delay", "label_moment", "patience", "default_label",
            "keep", "probabilities", "allow_mismatch")  # fmt: skip
"""Options that mean nothing for sentences."""


def of_sentences(options: argparse.Namespace, model: Any = None) -> bool:
    """Tell whether a saved model, or a new one of the options, takes sentences.

    Options that are for rows only are refused then.
    """
    names = {learner.name for learner in registered_learners("sentences")}
    if not (options.learner in names if model is None else are_sentences(model)):
        return False
    given = [name for name in _OF_ROWS if getattr(options, name, None) not in (None, False)]
    if given:
        wrong = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ParameterError(f"{wrong}: not for learners of label sequences; leave it out")
    return True


def columns_of(options: argparse.Namespace, model: Any = None) -> list[str] | None:
    """Return the columns of tokens of the options, or else those that a saved model knows.

    None: neither says any. Others than the model knows, or in another order, are refused.
    """
    first = None if model is None else steps_of(model)[0]
    known = first.columns.split(",") if isinstance(first, Chain) and first.columns else None
    if options.columns is None:
        return known
    given: list[str] = options.columns.split(",")
    if options.target in given:
        raise ParameterError(f"--target {options.target}: the labels are among the --columns")
    if known is not None:
        pairs = zip(given, known, strict=False)
        if len(given) != len(known) or any(a != b and a in known for a, b in pairs):
            raise ParameterError(
                f"--columns {options.columns}: the model has learnt {','.join(known)}; name as "
                "many, in this order"
            )
    return given


def open_sentences(path: str, target: str | None, columns: list[str] | None, **options: Any) -> Any:
    """Open a Parquet file or folder as a `SentenceSource`, anything else as a `ConllSource`."""
    if not Path(path).exists():
        raise SourceNotFoundError(f"`{path}` does not exist; give a Parquet file, or a text")
    if Path(path).is_dir() or Path(path).suffix.lower() in (".parquet", ".pq"):
        return SentenceSource(path, columns, target, **options)
    if columns is not None:
        raise ParameterError("--columns is for Parquet files: of a text, all columns are used")
    if options.get("shuffle_buffer"):
        raise ParameterError("--shuffle-buffer is for Parquet files: a text is read in its order")
    try:
        return ConllSource(path, None if target is None else int(target))
    except ValueError as error:
        raise ParameterError(
            f"--target {target}: of a text, use the number of a column, or -1, the last"
        ) from error


def labelled(
    model: Any, source: Any, score: ChunkScore | None = None
) -> Iterator[tuple[Any, list[list[Any] | None]]]:
    """Yield each batch of a source, and the labels of its sentences; None of one without any.

    A `score` counts them; all tokens of a sentence that cannot be used are wrong.
    """
    bad, n = BadEvents("skip"), 0
    feeder = SentenceFeeder(model, bad)
    for batch in source.batches():
        found: list[list[Any] | None] = [None] * len(batch)
        kept, predicted = feeder.predict(batch)
        for i, labels in zip(kept.tolist(), predicted, strict=True):
            found[i] = labels
        n += len(kept)
        if score is not None:
            for true, guessed in zip(batch.labels, found, strict=True):
                score.update(true, [None] * len(true) if guessed is None else guessed)
        yield batch, found
    if not n and bad.total:
        raise FeatureError(f"no sentence of {source.name} can be used: {bad.summary}")


def test_score(model: Any, source: Any) -> ChunkScore:
    """Return the score of a model on sentences."""
    score = ChunkScore()
    for _ in labelled(model, source, score):
        pass
    return score


def said(score: ChunkScore, name: str) -> str:
    """Return a score on the sentences of a file in words."""
    text = f"{1.0 - score.accuracy:.2%} of {score.n_tokens:,} tokens of {name}"
    return text + (f", chunk F1 {score.f1:.2%}" if score.n_true else "")


def tables_of(model: Any, source: Any, score: ChunkScore | None) -> Iterator[pa.Table]:
    """Yield the file, the row and the labels of each sentence; null if it cannot be used."""
    type_ = pa.list_(pa.array(steps_of(model)[-1].classes).type)
    for batch, predicted in labelled(model, source, score):
        numbers = [*batch.rows, *(reject.position.row for reject in batch.rejects)]
        labels = pa.array([*predicted, *[None] * len(batch.rejects)], type_)
        columns = {"row": np.array(numbers, np.int64), "prediction": labels}
        files = pa.array([source.name] * len(numbers))
        yield pa.table({"file": files, **columns}).sort_by("row")
