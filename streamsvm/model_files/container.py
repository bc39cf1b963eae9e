"""Model files: one Arrow IPC file of data, never code.

The file holds one record batch with one row. Each column is an array of one part of the model, as
raw bytes, with its dtype and shape in the field's metadata; Arrow compresses them where that is
worth it. The schema's metadata hold the format's version, the library's version, the parts as JSON
(class, parameters, scalars) and a SHA-256 of the whole file, computed with the digest's own places
zeroed: no byte can change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamsvm.errors import (
    DamagedModelFileError,
    ModelFileError,
    NewerModelFileError,
    NotAModelFileError,
)
from streamsvm.model_files import codec
from streamsvm.model_files.json_values import as_json, checked
from streamsvm.model_files.replacing import write
from streamsvm.support.declaration import as_int
from streamsvm.support.locked import together

FORMAT = 4
"""The format that this release reads and writes."""

_MAGIC = b"ARROW1"
_KEY = b"streamsvm.sha256."
_ZEROS = b"0" * 64
_FURTHER = "further"
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "|u1")
_MOST_AXES = 3
_ZSTD_LEVEL = 3

_pipelines: list[Callable[..., Any]] = []
_wrappers: dict[type, Callable[..., Any]] = {}
_around_several: set[type] = set()


def register_pipeline(make: Callable[..., Any]) -> None:
    """Register the class of pipelines, which this layer does not import.

    ``make(*steps)`` returns a pipeline, whose attribute ``steps`` is a dict {name: step}.
    """
    _pipelines[:] = [make]


def register_wrapper(
    first: type, make: Callable[..., Any], is_around_several: bool = False
) -> None:
    """Register a model around another one, whose first step is of the class `first`.

    ``make(step, model)`` returns it; its attribute ``steps`` are that step and those of the model.
    If it is around several, these are given one after the other.
    """
    _wrappers[first] = make
    if is_around_several:
        _around_several.add(first)


def save(model: Any, path: str | Path) -> None:
    """Write a learner, a River pipeline of ours, or a wrapper of them to a file.

    Parameters
    ----------
    model
        A learner, a pipeline of `StandardScaler` and a learner, or an `ActiveLearner`,
        `ConformalSets`, `Selective` or `Compare` of them.
    path
        The path of the file. An older file is replaced in one step, or left unchanged on any
        failure.

    Raises
    ------
    UnwritableModelFileError
        The operating system refuses to write the file.
    ModelFileError
        The model has a part that a file cannot hold.

    """
    write(Path(path), encoded(model))


class Saved:
    """Base class of what is saved by a method of its own, too."""

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, which `streamsvm.load` reads: see `streamsvm.save`.

        Parameters
        ----------
        path
            The path of the file. An older file is replaced in one step, or left unchanged on any
            failure.

        Raises
        ------
        UnwritableModelFileError
            The operating system refuses to write the file.
        ModelFileError
            The learner has a part that a file cannot hold.

        """
        save(self, path)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline or `ActiveLearner`; of a learner or scaler, it alone."""
    steps = getattr(model, "steps", None)
    return list(steps.values()) if isinstance(steps, dict) else [model]


def encoded(
    model: Any,
    about: dict[str, Any] | None = None,
    further: dict[str, np.ndarray] | None = None,
) -> bytes:
    """Return a model file as bytes; it is consistent, even if other threads learn meanwhile.

    `about` and `further`, JSON values and arrays by name, are not part of the model.
    """
    check(model)
    steps, known = steps_of(model), codec.registered()
    is_compressed = any(known[codec.file_name(type(step))].is_compressed for step in steps)

    def written() -> Any:
        described: list[dict[str, Any]] = []
        arrays: dict[str, np.ndarray] = {}
        for i, step in enumerate(steps):
            content, own = codec.to_file(step)
            described.append({"class": codec.file_name(type(step)), **content})
            arrays |= {f"{i}.{key}": array for key, array in own.items()}
        arrays |= {f"{_FURTHER}.{key}": array for key, array in (further or {}).items()}
        # This copies the arrays, which may be views of arrays that change later.
        return _arrow(described, about or {}, arrays, is_compressed)

    return _stamped(together(list({id(step): step for step in (model, *steps)}.values()), written))


def check(model: Any) -> None:
    """Raise ModelFileError if a part of a model is of a class that is not registered."""
    steps = steps_of(model)
    known = codec.registered(any(codec.file_name(type(s)).startswith("river.") for s in steps))
    public = known.keys() - {codec.file_name(first) for first in _wrappers}
    for step in steps:
        name = codec.file_name(type(step))
        if name not in known or type(step) is not known[name].cls:
            whose = "River's" if name.startswith("river.") else "a"
            raise ModelFileError(
                f"{whose} {type(step).__name__} cannot be saved: model files hold "
                f"{', '.join(sorted(public))} and pipelines of them. {_instead(step, model)}"
            )


def _instead(step: Any, model: Any) -> str:
    """Return what can be done with a model that has a step which a file cannot hold."""
    if type(step).__name__ in codec.registered():
        return f"Use streamsvm.{type(step).__name__} in its place"
    if step is model or type(steps_of(model)[0]) in _wrappers:
        return "Pickle it, and load pickles only from people you trust"
    if type(step).__name__ == "TransformerUnion":  # text is treated in another way than numbers
        return (
            "Use streamsvm.StandardScaler() | learner, and give it events as "
            "connectors.one_hot(x) returns them (Run and ModelPerKey do so themselves): text is "
            "one-hot then, and the scaler leaves that as it is. Or pickle the pipeline, and load "
            "pickles only from people you trust"
        )
    return (
        "Pickle the pipeline (and load pickles only from people you trust), or save the learner "
        f"alone, pipeline[{list(model.steps)[-1]!r}].save(path), and transform events before it"
    )


def _arrow(
    described: list[dict[str, Any]],
    about: dict[str, Any],
    arrays: dict[str, np.ndarray],
    is_compressed: bool,
) -> bytes:
    from streamsvm import __version__

    fields, columns = [], []
    for name, array in arrays.items():
        shape = {"dtype": array.dtype.str, "shape": json.dumps(array.shape)}
        fields.append(pa.field(name, pa.large_binary(), metadata=shape))
        columns.append(pa.array([np.ascontiguousarray(array).tobytes()], pa.large_binary()))
    metadata = {
        "streamsvm.format": str(FORMAT),
        "streamsvm.version": __version__,
        "streamsvm.parts": json.dumps(described, allow_nan=True),
        "streamsvm.about": json.dumps(about, default=partial(as_json, what="the label")),
        "streamsvm.digest": (_KEY + _ZEROS).decode(),
    }
    schema = pa.schema(fields, metadata=metadata)
    sink = pa.BufferOutputStream()
    compression = pa.Codec("zstd", compression_level=_ZSTD_LEVEL) if is_compressed else None
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return sink.getvalue().to_pybytes()


def _stamped(content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest().encode()
    return content.replace(_KEY + _ZEROS, _KEY + digest)


def digest_of(content: bytes) -> str:
    """Return the SHA-256, as text, of the model in a file: without the release that wrote it."""
    with pa.ipc.open_file(content) as reader:
        found = hashlib.sha256(reader.schema.metadata[b"streamsvm.parts"])
        (row,) = reader.get_batch(0).to_pylist()
        for field in reader.schema:
            found.update(json.dumps([field.name, str(field.metadata)]).encode() + row[field.name])
    return found.hexdigest()


def load(path: str | Path, functions: Iterable[Callable[..., Any]] = ()) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path
        The path of the file.
    functions
        The functions that the model may call: those of River's ``FuncTransformer`` in a pipeline. A
        file has their names only, and none is imported or called that is not among these.

    Returns
    -------
    The learner, which predicts and learns as if it had never been saved; a
    ``river.compose.Pipeline`` if a pipeline was saved, an `ActiveLearner` without its oracle if one
    was.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    NotAModelFileError
        It is another kind of file.
    DamagedModelFileError
        It is truncated or altered.
    NewerModelFileError
        It needs a later release.
    ModelFileError
        It is of an earlier format.

    """
    return read(path, functions)[0]


def read(
    path: str | Path, functions: Iterable[Callable[..., Any]] = ()
) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """Return a model, and the JSON values and arrays beside it: `about` and `further` of `encoded`.

    Raises what `load` raises.
    """
    return decoded(Path(path).read_bytes(), path, functions)


def decoded(
    content: bytes, path: str | Path, functions: Iterable[Callable[..., Any]] = ()
) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """Do what `read` does with the content of a file; messages name it by its path."""
    if not content.startswith(_MAGIC):
        what = "empty" if not content else "not an Arrow file"
        raise NotAModelFileError(f"{path} is no streamsvm model: it is {what}")
    at = content.find(_KEY)
    if at < 0 and content.endswith(_MAGIC):
        raise NotAModelFileError(f"{path} is an Arrow file, but no streamsvm model")
    stated = content[at + len(_KEY) : at + len(_KEY) + 64]
    plain = content.replace(_KEY + stated, _KEY + _ZEROS)
    if at < 0 or hashlib.sha256(plain).hexdigest().encode() != stated:
        raise DamagedModelFileError(
            f"{path} is damaged: its checksum does not match (truncated or altered); "
            "restore it from a copy"
        )
    allowed = codec.functions.set(codec.by_name(functions))
    try:
        return _decoded(content)
    except NewerModelFileError as error:
        raise NewerModelFileError(f"{path} {error}") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except Exception as error:
        # A file made by someone else may cause any exception: for the user all mean the same.
        raise DamagedModelFileError(
            f"{path} does not hold together: {error or type(error).__name__}"
        ) from error
    finally:
        codec.functions.reset(allowed)


def _decoded(content: bytes) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """Return the result of `read`; any exception means that the content is no model."""
    with pa.ipc.open_file(content) as reader:
        metadata = {k.decode(): v.decode() for k, v in (reader.schema.metadata or {}).items()}
        if (number := int(metadata["streamsvm.format"])) != FORMAT:
            was_written = (
                f"was written by streamsvm {metadata['streamsvm.version']:.20} in format {number}; "
                f"this release reads format {FORMAT} only"
            )
            if number > FORMAT:
                raise NewerModelFileError(f"{was_written}: upgrade")
            raise ModelFileError(f"it {was_written}: let the model learn anew")
        if any(field.type != pa.large_binary() for field in reader.schema):
            raise ValueError("a column is not binary")
        if reader.num_record_batches != 1:
            raise ValueError("there is not one batch")
        batch = reader.get_batch(0)
    # First, since Arrow does not check offsets when it reads.
    batch.validate(full=True)
    if batch.num_rows != 1:
        raise ValueError("there is not one row")
    described = checked(json.loads(metadata["streamsvm.parts"]), list, "the parts")
    arrays = _arrays_of(batch)
    steps = []
    for i, part in enumerate(described):
        name = checked(checked(part, dict, "a part").get("class"), str, "the class")
        if name not in codec.registered(name.startswith("river.")):
            raise ModelFileError(f"it holds a {name!r:.60}, unknown to this release")
        steps.append(codec.from_file(part, arrays.pop(str(i), {})))
    further = arrays.pop(_FURTHER, {})
    if not steps or arrays:
        raise ValueError("there are no parts, or arrays that belong to none")
    about = checked(json.loads(metadata["streamsvm.about"]), dict, "streamsvm.about")
    return model_of_steps(steps), about, further


def model_of_steps(steps: list[Any]) -> Any:
    """Return the model of some steps: a learner or scaler, a pipeline, or a wrapper of others."""
    first, inner = type(steps[0]), steps[1:]
    if first in _wrappers:
        if not inner or not hasattr(inner[-1], "predict_one"):
            raise ValueError("a wrapper is around no learner")
        models = _divided(inner) if first in _around_several else [inner]
        return _wrappers[first](steps[0], *map(model_of_steps, models))
    if any(type(step) in _wrappers for step in inner):
        raise ValueError("a wrapper is not the first step")
    if any(hasattr(step, "predict_one") for step in steps[:-1]):
        raise ValueError("a learner is not the last step")
    return steps[0] if len(steps) == 1 else _pipelines[0](*steps)


def _divided(steps: list[Any]) -> list[list[Any]]:
    """Return the steps of several models, each of which ends with a learner."""
    ends = [i + 1 for i, step in enumerate(steps) if hasattr(step, "predict_one")]
    return [steps[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _arrays_of(batch: pa.RecordBatch) -> dict[str, dict[str, np.ndarray]]:
    """Return the arrays by the part that they belong to, and by name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        owner, _, name = field.name.partition(".")
        dtype = field.metadata[b"dtype"].decode()
        if dtype not in _DTYPES:
            raise ValueError(f"{field.name} is of dtype {dtype!r:.20}")
        shape = checked(json.loads(field.metadata[b"shape"]), list, "a shape")
        lengths = [as_int("a length", length, 0) for length in shape]
        buffer = column[0].as_buffer()
        if buffer is None or len(lengths) > _MOST_AXES:
            raise ValueError(f"{field.name} is null, or has too many axes")
        parts = found.setdefault(owner, {})
        if name in parts:
            raise ValueError(f"{field.name} is there twice")
        parts[name] = np.frombuffer(buffer, dtype).reshape(lengths).copy()
    return found
