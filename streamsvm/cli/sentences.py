"""Sentences in the command: their files, and the labels that a model predicts for them."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from connectors import (
    ConllSource,
    MissingColumnError,
    RecordSource,
    SentenceSource,
    Source,
    SourceNotFoundError,
)
from streamsvm.errors import FeatureError, ParameterError
from streamsvm.labels.given import labels_of_predictions
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.score import SentenceScore
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of, unwrapped
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.record_feeder import feeder_of
from streamsvm.run.sentence_feeder import are_sentences
from streamsvm.structured import Chain, ConceptLabeler, MeaningScore, OSPASParser, as_text

_OF_ROWS = ("exclude", "weight", "parse_numbers", "positive", "timestamp", "speed", "key",
            "labels_topic", "label_delay", "label_moment", "patience", "default_label",
            "keep", "probabilities", "allow_mismatch")  # fmt: skip
"""Options that mean nothing for sentences."""


def of_sentences(options: argparse.Namespace, model: Model | None = None) -> bool:
    """Tell whether a saved model, or a new one of the options, takes sentences.

    Options that are for rows only are refused then.
    """
    names = {learner.name for learner in registered_learners() if learner.takes != "rows"}
    if not (options.learner in names if model is None else are_sentences(model)):
        return False
    given = [name for name in _OF_ROWS if getattr(options, name, None) not in (None, False)]
    if given:
        wrong = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ParameterError(f"{wrong}: not for learners of sentences; leave it out")
    return True


def columns_of_records(options: argparse.Namespace, model: Model | None = None) -> list[str] | None:
    """Return the columns of an example, if the learner takes whole sentences; None: it does not.

    Others than so many as it takes are refused.
    """
    name = (
        options.learner
        if model is None
        else next(k.name for k in registered_learners() if k.cls is type(steps_of(model)[-1]))
    )
    if (wanted := _COLUMNS.get(name)) is None:
        return None
    given: list[str] = [] if options.columns is None else options.columns.split(",")
    fewest, most, words = wanted
    if not fewest <= len(given) <= most:
        raise ParameterError(f"--columns: of --learner {name}, name {words}")
    for option in ("target", "truth"):
        if getattr(options, option, None) in given:
            raise ParameterError(f"--{option} {getattr(options, option)}: it is in --columns, too")
    if options.target is not None and options.target == getattr(options, "truth", None):
        raise ParameterError(f"--truth {options.truth}: this is the target itself")
    return given


_COLUMNS = {
    "ospas": (1, 1, "the column of the sentences, texts or lists of words"),
    "concepts": (1, 2, "the column of the words, and that of the universe, if there is one"),
}
"""The fewest and the most columns of an example, and what they are."""


def open_records(
    path: str,
    columns: list[str],
    target: str | None,
    truth: str | None = None,
    is_test: bool = False,
    **options: Any,
) -> RecordSource:
    """Open a Parquet file or folder whose columns are read as they are.

    A test needs only one of target and truth.
    """
    kept = [] if truth is None else [truth]
    while True:
        try:
            return RecordSource(path, columns, target, kept, **options)
        except MissingColumnError as error:
            if not is_test or target is None or error.column in columns:
                raise
            if error.column == truth:
                kept = []
            elif kept:
                target = None
            else:
                raise


def columns_of(options: argparse.Namespace, model: Model | None = None) -> list[str] | None:
    """Return the columns of tokens of the options, or else those that a saved model knows.

    None: neither says any. Others than the model knows, or in another order, are refused.
    """
    first = None if model is None else steps_of(unwrapped(model))[0]
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


def open_sentences(
    path: str, target: str | None, columns: list[str] | None, **options: Any
) -> Source:
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
    model: Model, source: Source, score: SentenceScore | None = None, truth: str | None = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each batch of a source, and what is predicted for its sentences; None: nothing.

    A `score` counts them; all tokens of a sentence that cannot be used are wrong.
    """
    bad, n = BadEvents("skip"), 0
    feeder = feeder_of(model, bad)
    feeder.truth = truth
    for batch in source.batches():
        found: list[Any] = [None] * len(batch)
        kept = feeder.predict(batch)
        for i, labels in zip(kept.numbers.tolist(), kept.labels, strict=True):
            found[i] = labels
        n += len(kept.labels)
        if score is not None:
            feeder.judged(batch, found).add_to(score)
        yield batch, found
    if not n and bad.total:
        raise FeatureError(f"no sentence of {source.name} can be used: {bad.summary}")


def new_score(model: Model) -> SentenceScore | None:
    """Return an empty score of what a model predicts."""
    return feeder_of(model, BadEvents("skip")).new_score()


def test_score(model: Model, source: Source, truth: str | None = None) -> SentenceScore | None:
    """Return the score of a model on sentences."""
    score = new_score(model)
    for _ in labelled(model, source, score, truth):
        pass
    return score


def tested(score: Any) -> dict[str, Any]:
    """Return a score on a test as values of the report."""
    if isinstance(score, MeaningScore):
        found = {f"test_{name}": value for name, value in score.as_dict().items()}
        return {"test_error": 1.0 - score.accuracy} | found
    found = {"test_error": 1.0 - score.accuracy, "test_tokens": score.n_tokens}
    found |= {"test_sentence_error": 1.0 - score.sentence_accuracy}
    return found | {"test_chunk_f1": score.f1}


def said_of_meanings(found: Mapping[str, float]) -> str:
    """Return what a score of meanings, as a dict, has counted of those that are known, in words."""
    if not found.get("true"):
        n, among = found["predicted"], found.get("among_candidates", 0.0)
        return f"{among:.2%} of {n:,} meanings predicted are candidates"
    return (
        f"{found['recall']:.2%} of the {found['true']:,} that are known (recall); precision "
        f"{found['precision']:.2%}, F1 {found['f1']:.2%}"
    )


def score_text(score: Any, name: str) -> str:
    """Return a score on the sentences of a file in words."""
    if isinstance(score, MeaningScore):
        return f"{1.0 - score.accuracy:.2%} of {name}; right: {said_of_meanings(score.as_dict())}"
    text = f"{1.0 - score.accuracy:.2%} of {score.n_tokens:,} tokens of {name}"
    if score.n_true:
        return f"{text}, chunk F1 {score.f1:.2%}"
    return f"{text}, in {1.0 - score.sentence_accuracy:.2%} of the sentences"


def tables_of(model: Model, source: Source, score: SentenceScore | None) -> Iterator[pa.Table]:
    """Yield the file, the row and the labels of each sentence; null if it cannot be used.

    Of `ConformalSets` also the sets of its tokens, of a parser the symbols of words.
    """
    learner = steps_of(model)[-1]
    is_parser = isinstance(learner, OSPASParser)
    kind = pa.string() if is_parser else _type_of(learner)
    for batch, predicted in labelled(model, source, score):
        none = [None] * len(batch.rejects)
        numbers = [*batch.rows, *(reject.position.row for reject in batch.rejects)]
        columns = {"row": pa.array(np.array(numbers, np.int64))}
        if is_parser:
            meanings = [None if parse is None else parse.meaning for parse in predicted]
            texts = [None if meaning is None else as_text(meaning) for meaning in meanings]
            symbols = [None if parse is None else parse.symbols for parse in predicted]
            columns["prediction"] = _array([*texts, *none], kind)
            columns["symbols"] = _array([*symbols, *none], pa.list_(kind))
        else:
            columns["prediction"] = _array(
                [*labels_of_predictions(predicted), *none], pa.list_(kind)
            )
        if adapter_of(model).has_sets:
            sets = [None if one is None else one.labels for one in predicted]
            columns["set"] = _array([*sets, *none], pa.list_(pa.list_(kind)))
        files = pa.array([source.name] * len(numbers))
        yield pa.table({"file": files, **columns}).sort_by("row")


def _type_of(learner: Learner) -> pa.DataType:
    """Return the type of the labels in a file: text, if they are of several types.

    So are concepts: "-" is one, and the universe may have others than those that were learnt.
    """
    try:
        return (
            pa.string() if isinstance(learner, ConceptLabeler) else pa.array(learner.classes).type
        )
    except (pa.ArrowException, OverflowError):
        return pa.string()


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values, or lists of them, as a column; what is no text in one of texts becomes one."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError):
        return pa.array(_texts(values), kind)


def _texts(found: Any) -> Any:
    if isinstance(found, (list, tuple)):
        return list(map(_texts, found))
    return found if found is None or isinstance(found, str) else str(found)
