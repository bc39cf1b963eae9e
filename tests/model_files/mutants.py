"""Spoils a valid model file in many ways, with a right checksum, and loads and uses what results.

    python -m tests.model_files.mutants FILE SEED COUNT

Each mutant must load or be refused as a `ModelFileError`; what loads is used for some events, which
may be refused as such. Anything else ends the process: an exception, a crash or, by an alarm, a
hang. The last line printed says which mutant it was.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm import load
from streamsvm.errors import ModelFileError, StreamSVMError
from streamsvm.model_files import container

SECONDS = 300
EVENTS = [({"a": 0.1 * i, "b": 1.0 - i, "c": 0.5}, i % 3) for i in range(6)]
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "|u1", ">f8", "|O", "|V0", "no dtype")
SHAPES: list[Any] = [
    [],
    [0],
    [-1],
    [1, 1],
    [2**40],
    [2**40, 0],
    [2**62, 4],
    "x",
    None,
    [1.5],
    [[1]],
]
NUMBERS = (0.0, -1.0, 7.0, 1e6, 1e300, -1e300, np.nan, np.inf, -np.inf)
VALUES: list[Any] = [None, True, False, -1, 0, 7, 10**6, 2**62, 2**70, -(2**70), 0.5, 1e300]
VALUES += ["x", "", [], {}, [[]], [1, 1], {"a": 1}, float("nan"), float("inf")]


class Content:
    """A model file taken apart."""

    def __init__(self, raw: bytes) -> None:
        with pa.ipc.open_file(raw) as reader:
            schema, batch = reader.schema, reader.get_batch(0)
        self.metadata = {k.decode(): v.decode() for k, v in schema.metadata.items()}
        self.parts = json.loads(self.metadata["streamsvm.parts"])
        self.names = list(schema.names)
        self.dtypes = [field.metadata[b"dtype"].decode() for field in schema]
        self.shapes = [json.loads(field.metadata[b"shape"]) for field in schema]
        self.columns = [column[0].as_py() for column in batch.columns]
        self.patches: list[tuple[bytes, bytes]] = []

    def written(self) -> bytes:
        """Return it as a file, with a right checksum."""
        fields, arrays = [], []
        for name, dtype, shape, column in zip(
            self.names, self.dtypes, self.shapes, self.columns, strict=True
        ):
            about = {"dtype": dtype, "shape": json.dumps(shape)}
            array = (
                column if isinstance(column, pa.Array) else pa.array([column], pa.large_binary())
            )
            fields.append(pa.field(name, array.type, metadata=about))
            arrays.append(array)
        key = (container._KEY + container._ZEROS).decode()
        metadata = {**self.metadata, "streamsvm.digest": key}
        metadata.setdefault("streamsvm.format", str(container.FORMAT))
        metadata["streamsvm.parts"] = json.dumps(self.parts)
        schema = pa.schema(fields, metadata=metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        written = sink.getvalue().to_pybytes()
        for old, new in self.patches:
            written = written.replace(old, new)
        return container._stamped(written)

    def array(self, i: int) -> np.ndarray:
        """Return array i, writable."""
        return np.frombuffer(self.columns[i], self.dtypes[i]).reshape(self.shapes[i]).copy()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value of a JSON value."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def spoil_json(content: Content, draw: random.Random) -> str:
    path = draw.choice(list(leaves(content.parts)))
    holder = content.parts
    for key in path[:-1]:
        holder = holder[key]
    kind = draw.randrange(8)
    if kind == 0:
        del holder[path[-1]]
        return f"no {path}"
    if kind == 1 and isinstance(holder, dict):
        holder["more"] = 1
        return f"more beside {path}"
    value = draw.choice(VALUES)
    holder[path[-1]] = copy.deepcopy(value)
    return f"{path} = {value!r}"


def spoil_array(content: Content, draw: random.Random) -> str:
    i = draw.randrange(len(content.names))
    name = content.names[i]
    kind = draw.randrange(9)
    if kind == 0:
        content.dtypes[i] = draw.choice(DTYPES)
        return f"{name}: dtype {content.dtypes[i]}"
    if kind == 1:
        content.shapes[i] = draw.choice([*SHAPES, content.shapes[i][::-1]])
        return f"{name}: shape {content.shapes[i]}"
    if kind == 2:
        del content.names[i], content.dtypes[i], content.shapes[i], content.columns[i]
        return f"no {name}"
    if kind == 3:
        content.names[i] = draw.choice(["0.more", "9.more", "more", content.names[0]])
        return f"{name} renamed {content.names[i]}"
    if kind == 4:
        return f"{name}: {spoil_column(content, i, draw)}"
    array = content.array(i)
    if kind == 5:
        array = np.concatenate([array, array]) if draw.random() < 0.5 else array[:-1]
    elif kind == 6:
        array = array.astype(draw.choice(DTYPES[:6]))
    else:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.array([draw.choice(NUMBERS)]).astype(array.dtype)
        flat = array.reshape(-1)
        if draw.random() < 0.4 and array.dtype.kind in "fi":
            # Values that look right one by one.
            with np.errstate(all="ignore"):
                changed = draw.choice([flat[::-1], -flat, flat * 2, flat / 3, np.roll(flat, 1)])
            values = changed.astype(array.dtype)
        n = min(1, len(flat)) if draw.random() < 0.3 else len(flat)
        flat[:n] = values[:n] if len(values) == len(flat) else values
        if len(flat) and draw.random() < 0.3:
            flat[draw.randrange(len(flat))] = draw.randrange(200)
    content.columns[i] = array.tobytes()
    content.dtypes[i], content.shapes[i] = array.dtype.str, list(array.shape)
    return f"{name}: {array.dtype} {array.shape} {array.reshape(-1)[:3]}"


def spoil_column(content: Content, i: int, draw: random.Random) -> str:
    """Let Arrow's own buffers be wrong."""
    kind = draw.randrange(4)
    if kind == 0:
        ends = draw.choice([[0, 2**40], [-8, 8], [8, 0], [2**62, 2**62 + 8]])
        # Arrow refuses to write them: they are put in afterwards.
        right = np.array([0, len(content.columns[i])], np.int64).tobytes()
        content.patches.append((right, np.array(ends, np.int64).tobytes()))
        return f"offsets {ends}"
    array = [
        pa.array([None], pa.large_binary()),
        pa.array([1], pa.int64()),
        pa.array([b"abc"], pa.binary()),
    ][kind - 1]
    content.columns[i] = array
    return f"a column of {array.type}"


def spoil_metadata(content: Content, draw: random.Random) -> str:
    key = draw.choice(["streamsvm.format", "streamsvm.version", "streamsvm.about"])
    value = draw.choice([None, "", "x", "-1", "2", "[]", "{}", "9" * 5000, "null", "[" * 9999])
    if value is None:
        content.metadata.pop(key, None)
    else:
        content.metadata[key] = value
    return f"{key} = {value!r:.20}"


def spoil_bytes(raw: bytes, draw: random.Random) -> tuple[str, bytes]:
    at = raw.find(container._KEY) + len(container._KEY)
    changed = bytearray(raw)
    changed[at : at + 64] = container._ZEROS
    places = [draw.randrange(8, len(raw)) for _ in range(draw.choice([1, 1, 4]))]
    for place in places:
        if not at - len(container._KEY) <= place < at + 64:
            changed[place] = draw.randrange(256)
    return f"bytes at {places}", container._stamped(bytes(changed))


def mutant(raw: bytes, draw: random.Random) -> tuple[str, bytes]:
    """Return what was spoilt, and the file."""
    kinds: list[Callable[[Content, random.Random], str]]
    kinds = [spoil_json] * 4 + [spoil_array] * 5 + [spoil_metadata]
    kind = draw.randrange(len(kinds) + 2)
    if kind >= len(kinds):
        return spoil_bytes(raw, draw)
    content = Content(raw)
    return kinds[kind](content, draw), content.written()


def use(model: Any) -> None:
    """Predict, learn, look and save; events may be refused."""
    last = list(model.steps.values())[-1] if hasattr(model, "steps") else model
    of_sequences = hasattr(last, "inference")
    for x, y in EVENTS:
        with contextlib.suppress(StreamSVMError):
            if of_sequences:
                model.predict_one([x, ["a0"], x])
                model.learn_one([x, ["a0"], x], [y, (last.classes or [y])[0], y])
                continue
            model.predict_one(x)
            if hasattr(last, "classes"):
                label = last.classes[y % len(last.classes)] if last.classes else bool(y)
                model.predict_proba_one(x)
                model.learn_one(x, label)
    if hasattr(last, "classes") and not of_sequences and last.classes:
        with contextlib.suppress(StreamSVMError):
            labels = [last.classes[i % len(last.classes)] for i in range(40)]
            last.learn_many(np.arange(120.0).reshape(40, 3) % 7.0, labels)
    if hasattr(last, "finish"):
        last.finish(**({"max_passes": 2} if of_sequences else {}))
    if hasattr(last, "kernel_"):
        last.support_vectors()
        if last.has_dual:
            last.duality_gap()
    with tempfile.TemporaryDirectory() as folder:
        last.save(Path(folder) / "m.svm")


def main(path: Path, seed: int, count: int) -> None:
    """Try so many mutants of a file."""
    raw, draw = path.read_bytes(), random.Random(seed)
    use(load(path))
    np.seterr(all="ignore")
    loaded = 0
    with tempfile.TemporaryDirectory() as folder:
        spoilt = Path(folder) / "spoilt.svm"
        for i in range(count):
            what, content = mutant(raw, draw)
            print(i, what, flush=True)
            spoilt.write_bytes(content)
            signal.alarm(SECONDS)
            try:
                model = load(spoilt)
            except ModelFileError:
                continue
            use(model)
            loaded += 1
            signal.alarm(0)
    print(f"{count} mutants, {loaded} of them loaded")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
