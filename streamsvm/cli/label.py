"""`streamsvm label`: label the tokens of sentences of a file, which are learnt as they come."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors import ConllSource
from streamsvm.cli.outputs import check_file
from streamsvm.cli.parser import Parser
from streamsvm.cli.values import path, positive, whole
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.sequence_learner import SequenceLearner
from streamsvm.learners.larank_sequence import LaRankSequenceLabeler
from streamsvm.learners.sequence_pa import SequencePA
from streamsvm.learners.sequence_perceptron import SequencePerceptron
from streamsvm.model_files.container import load, save, steps_of
from streamsvm.preprocessing.chain import Chain
from streamsvm.structured.chunks import ChunkScore

_BATCH = 256
_LEARNERS = {"larank": LaRankSequenceLabeler, "pa": SequencePA, "perceptron": SequencePerceptron}

Sentence = tuple[list[Any], list[Any] | None]
"""Tokens and labels; None: there are no labels."""


def complete(parser: Parser) -> None:
    """Add the subcommand's arguments."""
    parser.description = (
        "Label each token of each sentence of a file. With labels in the file, each sentence is "
        "predicted, scored, then learnt; without, it is predicted by the model of --model."
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "file",
        type=path,
        help="Parquet file, a sentence a row (.parquet); or text, a token a line, with a blank "
        "line between sentences",
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--tokens",
        metavar="A,B,...",
        help="columns of a Parquet file with lists of strings, a string a token; in templates the "
        "first is 0",
    )
    data.add_argument(
        "--labels",
        metavar="COLUMN",
        help="column with the lists of labels; of a text file its number from 0, or -1, the last. "
        "Not given: there are no labels",
    )
    data.add_argument("--limit", type=whole(1), metavar="N", help="read only so many sentences")
    learner = parser.add_argument_group("learner")
    learner.add_argument("--model", type=path, help="file written by --save: go on with it")
    learner.add_argument(
        "--features",
        type=path,
        metavar="TEMPLATE",
        help="file of templates in the format of CRF++; default: a window of two tokens, and pairs",
    )
    learner.add_argument("--learner", choices=tuple(_LEARNERS), help="default larank")
    learner.add_argument("--inference", choices=("greedy", "exact"), help="default greedy")
    learner.add_argument("--order", type=whole(0), help="labels before a token that count")
    learner.add_argument("--C", type=positive, help="cost of a wrong label; default .1")
    learner.add_argument("--seed", type=whole(0), help="of the draws of larank; default 0")
    output = parser.add_argument_group("output")
    output.add_argument("--save", type=path, metavar="MODEL", help="write the model at the end")
    output.add_argument(
        "-o", "--output", type=path, metavar="OUT.parquet", help="write the predicted labels"
    )
    output.add_argument("--json", action="store_true", help="the report as one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Predict, learn, report, save; return the exit code."""
    for option, file in (("--save", options.save), ("--output", options.output)):
        if file is not None:
            check_file(option, file)
    if options.labels is None and options.model is None:
        raise ParameterError("there is nothing to learn without --labels: name them, or --model")
    model = _model(options)
    score, started, interrupted = ChunkScore(), time.perf_counter(), False
    predicted: list[list[Any]] = []
    try:
        for labels in _labelled(model, _sentences(options), score):
            if options.output is not None:
                predicted.append(labels)
    except KeyboardInterrupt:
        interrupted = True
    report = _report(model, score, time.perf_counter() - started, options.labels is not None)
    if options.json:
        print(json.dumps(report))
    else:
        width = max(map(len, report))
        print("\n".join(f"{name:{width}}  {_shown(value)}" for name, value in report.items()))
    if options.output is not None:
        _write(options.output, predicted)
    if options.save is not None:
        save(model, options.save)
    return 130 if interrupted else 0


def _model(options: argparse.Namespace) -> Any:
    """Return the pipeline that was saved, or a new one."""
    given = {name: getattr(options, name) for name in ("inference", "order", "C", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.model is not None:
        if given or options.learner or options.features:
            raise ParameterError("--model has its own features and parameters: leave out others")
        model = load(options.model)
        steps = steps_of(model)
        fits = len(steps) == 2 and isinstance(steps[0], Chain)
        if not fits or not isinstance(steps[1], SequenceLearner):
            raise ParameterError(f"{options.model} holds no model that `streamsvm label` saved")
        return model
    cls = _LEARNERS[options.learner or "larank"]
    for name in given:
        if name not in inspect.signature(cls).parameters:
            raise ParameterError(f"--{name}: {options.learner} does not take it")
    if cls is LaRankSequenceLabeler:
        given.setdefault("seed", 0)
    template = None
    if options.features is not None:
        template = Path(options.features).read_text(encoding="utf-8")
    return Chain(template) | cls(**given)


def _sentences(options: argparse.Namespace) -> Iterator[Sentence]:
    """Yield the sentences of the file, up to the limit."""
    is_parquet = options.file.endswith(".parquet")
    found = _of_parquet(options) if is_parquet else _of_text(options)
    return islice(found, options.limit)


def _of_text(options: argparse.Namespace) -> Iterator[Sentence]:
    if options.tokens is not None:
        raise ParameterError("--tokens is for Parquet files: of a text file, all columns are used")
    label = None
    if options.labels is not None:
        try:
            label = int(options.labels)
        except ValueError as error:
            raise ParameterError(
                f"--labels {options.labels}: of a text file, use the number of a column, or -1"
            ) from error
    with ConllSource(options.file, label) as source:
        for tokens, labels, _ in source.events():
            yield tokens, labels  # type: ignore[misc]


def _of_parquet(options: argparse.Namespace) -> Iterator[Sentence]:
    if options.tokens is None:
        raise ParameterError("--tokens: name the columns of the tokens")
    names = options.tokens.split(",")
    with pq.ParquetFile(options.file) as file:
        wanted = [*names, *([options.labels] if options.labels else [])]
        for name in wanted:
            if name not in file.schema_arrow.names:
                known = ", ".join(file.schema_arrow.names)
                raise ParameterError(f"no column {name!r} in {options.file}: it has {known}")
            if not pa.types.is_list(file.schema_arrow.field(name).type):
                raise ParameterError(f"column {name!r} of {options.file} holds no lists")
        for batch in file.iter_batches(_BATCH, columns=wanted):
            columns = [batch.column(name).to_pylist() for name in wanted]
            for row in zip(*columns, strict=True):
                tokens = list(zip(*row[: len(names)], strict=True))
                yield tokens, row[-1] if options.labels else None


def _labelled(model: Any, sentences: Iterator[Sentence], score: ChunkScore) -> Iterator[list[Any]]:
    """Yield the labels predicted for each sentence, which is learnt afterwards."""
    chain, learner = steps_of(model)
    while some := list(islice(sentences, _BATCH)):
        features = chain.transform_many([tokens for tokens, _ in some])
        if some[0][1] is None:
            for labels in learner.predict_many(features):
                score.n_sentences += 1
                score.n_tokens += len(labels)
                yield labels
            continue
        true = [labels for _, labels in some]
        predicted = learner.predict_then_learn_many(features, true)
        for own, labels in zip(true, predicted, strict=True):
            score.update(own or [], labels)
            yield labels


def _report(model: Any, score: ChunkScore, seconds: float, learns: bool) -> dict[str, Any]:
    learner = steps_of(model)[-1]
    found: dict[str, Any] = {
        "sentences": score.n_sentences,
        "tokens": score.n_tokens,
        "seconds": f"{seconds:.3f}",
        "tokens a second": round(score.n_tokens / max(seconds, 1e-9)),
    }
    if learns:
        found["token accuracy"] = score.accuracy
        found["sentence accuracy"] = score.sentence_accuracy
        if score.n_true:
            found["chunk F1"] = score.f1
    found |= {"labels": len(learner.classes), "features": learner.n_features}
    if isinstance(learner, LaRankSequenceLabeler):
        found["support patterns"] = learner.n_support_patterns
    return found


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2%}" if isinstance(value, float) else f"{value:,}"


def _write(output: str, predicted: list[list[Any]]) -> None:
    """Write the predicted labels, a sentence a row; the file appears when it is complete."""
    target = Path(output)
    partial = target.with_name(f".{target.name}.partial")
    try:
        column = pa.array([[None if c is None else str(c) for c in row] for row in predicted])
        pq.write_table(pa.table({"labels": column.cast(pa.list_(pa.string()))}), partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    print(f"{len(predicted):,} sentences -> {target}", file=sys.stderr)
