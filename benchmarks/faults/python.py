"""Faults of use from Python."""

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
from river import preprocessing

import streamsvm
from benchmarks.faults.trial import examples, expect, fault
from connectors import MemorySource, one_hot
from streamsvm import LASVMClassifier, StandardScaler, SVMSGDClassifier
from streamsvm.errors import ModelFileError
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run


@fault(
    "`save` of a pipeline with River's own transformers",
    "refused with what can be done: pickle, or our scaler",
)
def rivers_transformers(folder: Path) -> None:
    for transformer, word in (
        (preprocessing.StandardScaler, "Use streamsvm.StandardScaler"),
        (preprocessing.OneHotEncoder, "Pickle"),
    ):
        try:
            streamsvm.save(transformer() | LASVMClassifier(), folder / "m.svm")
        except ModelFileError as error:
            expect(word in str(error), error)
        else:
            raise AssertionError("it was saved")


@fault("names of River's `OneHotEncoder`", "pass the scaler unscaled with `one_hot=`")
def one_hot_names(_: Path) -> None:
    scaler = StandardScaler(one_hot="^colour_")
    for i in range(50):
        scaler.learn_one({"a": float(i), "colour_red": 1.0, "colour=blue": 1.0})
    found = scaler.transform_one({"a": 3.0, "colour_red": 1.0, "colour=blue": 1.0})
    expect(found["colour_red"] == found["colour=blue"] == 1.0 and found["a"] != 3.0, found)


@fault(
    "NaN, null, None, a feature that is not there",
    "one rule: missing values, counted by column",
)
def missing(_: Path) -> None:
    x, y = [e["a"] for e in examples(60)], [e["y"] for e in examples(60)]
    b = [None if i % 3 else 1.0 for i in range(60)]
    frames = [
        pd.DataFrame({"a": x, "b": [np.nan if v is None else v for v in b]}),
        pa.table({"a": x, "b": b}),
        polars.DataFrame({"a": x, "b": b}),
    ]
    one = StandardScaler() | SVMSGDClassifier()
    for value, other, label in zip(x, b, y, strict=True):
        one.learn_one({"a": value} | ({} if other is None else {"b": other}), label)
    expected = one["StandardScaler"].statistics
    expect(expected["b"][0] == 20, expected)
    for frame in frames:
        many = StandardScaler() | SVMSGDClassifier()
        streamsvm.predict_then_learn_many(many, frame, y)
        expect(many["StandardScaler"].statistics == expected, type(frame))


@fault("raw rows with texts, for a model that learnt from a file", "`connectors.one_hot`")
def raw_rows(_: Path) -> None:
    expect(one_hot({"job": "clerk", "age": 3}) == {"job=clerk": 1.0, "age": 3.0})
    frame = one_hot(pd.DataFrame({"job": ["clerk", "cook"], "age": [3, 4]}))
    expect(set(map(str, frame.column_names if hasattr(frame, "column_names") else frame.columns))
           == {"job=clerk", "job=cook", "age"}, frame)  # fmt: skip


@fault(
    "a program that does not set up logging",
    "nothing is printed, but for a line after 3 seconds of compiling; set up, it is told by module",
)
def logs(folder: Path) -> None:
    heard: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record)

    handler, logger = Handler(), logging.getLogger("streamsvm")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        events = [({"a": e["a"]}, e["y"]) for e in examples(200)] + [({"a": float("inf")}, True)]
        Run(
            MemorySource(events),
            SVMSGDClassifier(),
            checkpoint=Checkpoint(folder / "run.ckpt", every=50),
            bad_events=BadEvents("dead-letter", folder / "l.jsonl"),
        ).execute()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    names = {record.name for record in heard}
    wanted = {f"streamsvm.run.{n}" for n in ("checkpoint", "bad_events", "letter_file")}
    expect(wanted <= names, names)
    silent = [h for h in logger.handlers if not isinstance(h, logging.NullHandler)]
    expect(not silent, "streamsvm has a handler of its own", silent)
