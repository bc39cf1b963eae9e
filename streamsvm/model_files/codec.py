"""The codec of model files: converts learners and scalers to JSON values and arrays, and back.

Parameters are read from the constructor's signature, and the state of a learner by its declaration.
All else that objects of a class keep is declared when the class is registered. Nothing in a file is
trusted: values that do not fit raise ValueError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

import streamsvm
from streamsvm.errors import ModelFileError
from streamsvm.features.missing import N_ROWS, are_possible
from streamsvm.features.schema import LIMIT, Schema
from streamsvm.model_files.json_values import (
    LARGEST_COUNT,
    Content,
    as_json,
    checked,
    distinct,
    parameters_as_json,
    parameters_from_json,
)
from streamsvm.support.declaration import Field, NamedArrays, as_int

_COUNTS = ("cache_counts", "info", "waiting", "uncounted", "risen")
"""How the names of arrays of counts end; in JSON values they begin with ``n_``."""


def _nothing_to_do(part: Any) -> None:
    pass


def _nothing_more(part: Any) -> Content:
    return {}, {}


def _read_nothing_more(part: Any, content: dict[str, Any], arrays: NamedArrays) -> None:
    pass


class FileClass(NamedTuple):
    """How objects of a class are written and read."""

    cls: type
    attributes: Mapping[str, tuple[str, Field]] = {}
    """Arrays that the class keeps beside its state: {name in the file: (attribute, declaration)}.

    The attribute may be one of a part: "solver.draws".

    Axes of the declaration may be "features", "classes", and "sides": classes, but at least 2.
    """
    prepare: Callable[[Any], Any] = _nothing_to_do
    """Called with the object before it is written; the caller holds its lock."""
    more: Callable[[Any], Content] = _nothing_more
    """more(part) returns further content to be written."""
    read_more: Callable[[Any, dict[str, Any], NamedArrays], None] = _read_nothing_more
    """read_more(part, content, arrays) sets on the object what `more` returned."""
    check: Callable[[Any], None] = _nothing_to_do
    """check(part) raises ValueError if an object from a file contradicts itself."""
    write: Callable[[Any], dict[str, Any]] | None = None
    """write(part) returns all content, in place of what else is said here."""
    read: Callable[[dict[str, Any]], Any] | None = None
    """read(content) returns the object of what `write` returned."""
    settings: Callable[[Any], str] = repr
    """settings(part) returns, of a class with `write`, what a resumed run must have, too."""
    is_compressed: bool = False
    """Whether files with such an object are compressed: worth it for whole numbers that repeat."""


_classes: dict[str, FileClass] = {}

functions: ContextVar[Mapping[str, Callable[..., Any]]] = ContextVar("functions")
"""The functions that the file which is being read may name, by their names: see `by_name`."""


def name_of(function: Any) -> str:
    """Return ``module:name`` of a function that other processes can import.

    ModelFileError: it is none, but a lambda, say, or defined in the program itself.
    """
    module, name = (getattr(function, a, None) for a in ("__module__", "__qualname__"))
    found: Any = sys.modules.get(module) if module not in (None, "__main__") else None
    for part in str(name).split("."):
        found = getattr(found, part, None)
    if found is None or found is not function:
        raise ModelFileError(
            f"the function {name or function!r} cannot be saved: model files hold functions by "
            "their names; define it by def at the top of a module that the program imports, not as "
            "a lambda, within another function, or in the program itself"
        )
    return f"{module}:{name}"


def by_name(given: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return functions by the names that files have of them."""
    return {name_of(function): function for function in given}


def register(cls: type, **how: Any) -> None:
    """Register a class whose objects model files can hold, with the other fields of `FileClass`.

    Files have the name of the class and those of its parameters.
    """
    _classes[file_name(cls)] = FileClass(cls, **how)


def file_name(cls: type) -> str:
    """Return the name of a class in files; River's have names of classes of this package, too."""
    is_rivers = cls.__module__.startswith("river.")
    return f"river.{cls.__name__}" if is_rivers else cls.__name__


def registered(with_rivers: bool = False) -> dict[str, FileClass]:
    """Return how objects of each registered class are written and read, by the name of the class.

    River's transformers are among them if asked for, or if this process uses them already.
    """
    # Classes register themselves when they are imported; someone may read a file before that.
    streamsvm.load_all()
    if with_rivers or "river.preprocessing" in sys.modules:
        streamsvm.load_rivers()
    return dict(_classes)


def to_file(part: Any) -> Content:
    """Return an object of a registered class as JSON values, and as arrays, views of its own.

    The caller holds its lock. Raises ModelFileError if a parameter, name or label is of a type that
    a file cannot hold.
    """
    how = _classes[file_name(type(part))]
    if how.write is not None:
        return how.write(part), {}
    how.prepare(part)
    content = parameters_as_json(part)
    if hasattr(part, "schema"):
        content["features"] = [as_json(name, "the feature name") for name in part.schema.names]
    arrays = {name: attrgetter(path)(part) for name, (path, _) in how.attributes.items()}
    if hasattr(part, "targets"):
        content["labels"] = [as_json(label, "the label") for label in part.targets.labels.seen]
    if _is_learner_of_rows(part):
        content |= {
            "n_ignored": part.schema.n_ignored,
            "is_sparse": part.is_sparse,
            "n_examples": part.n_examples,
        }
        # After an interruption names may be known for which there is no room yet.
        n_names = len(part.schema.names)
        statistics = part.schema.missing.reserve(n_names)[:, :n_names]
        if not part.is_sparse and statistics.size:
            arrays["missing"] = statistics
        arrays["calibration"] = part.targets.calibration
        # It may have learnt nothing since the last feature came.
        part.model.n_features = part.schema.buckets or len(part.schema)
        if part.model.n_examples:
            part.model.make_room(part.model.n_features)
        records, own = part.model.as_file()
        content, arrays = content | records, arrays | own
        if part.waiting is not None:
            records, own = part.waiting.as_file(len(part.schema))
            content, arrays = content | records, arrays | own
    more, further = how.more(part)
    return content | more, arrays | further


def from_file(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the object that `to_file` was given; the content of a file is not trusted.

    Raises ModelFileError if its kernel is not registered in this process; ValueError, TypeError,
    OverflowError or MemoryError if a value does not fit. A file made by someone else may cause
    other exceptions, too.
    """
    how, left = _classes[content["class"]], NamedArrays(arrays)
    _check_counts(content, arrays)
    if how.read is not None:
        left.check_all_taken()
        return how.read(content)
    part: Any = how.cls(**parameters_from_json(how.cls, content))
    if hasattr(part, "schema"):
        names = distinct(content.get("features"), "features")
        if _is_learner_of_rows(part):
            _read_learner(part, content, names, left)
        else:
            part.schema = Schema(names)
    for name, (path, declared) in how.attributes.items():
        owner, _, attribute = path.rpartition(".")
        of = attrgetter(owner)(part) if owner else part
        setattr(of, attribute, left.take(name, declared, _sizes(part)))
    if _is_learner_of_rows(part):
        part.model.read(content, left)
        if part.waiting is not None:
            part.waiting.read(content, left, len(part.schema), part.targets.n_classes)
    how.read_more(part, content, left)
    left.check_all_taken()
    how.check(part)
    return part


def _check_counts(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse counts that no learner reaches: a few examples later, they could not be saved."""
    found = [*_counts_in(content)]
    # Other whole numbers may be ids, which users choose.
    found += [(k, a.max(initial=0)) for k, a in arrays.items() if k.endswith(_COUNTS)]
    for name, value in found:
        if isinstance(value, (int, np.integer)) and value > LARGEST_COUNT:
            raise ValueError(f"{name}: {value} is more than a count can be, {LARGEST_COUNT}")


def _counts_in(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the counts among JSON values, those of models within a model, too."""
    for name, value in content.items():
        if name.startswith("n_"):
            yield name, value
        if name in ("info", "counts"):
            yield from _counts_in(value if isinstance(value, dict) else {})
        elif name == "models" and isinstance(value, list):
            for one in value:
                yield from _counts_in(one if isinstance(one, dict) else {})


def labels_in(content: Mapping[str, Any], most: int | None) -> list[Any]:
    """Return the labels of a learner's file; at most so many, if that is given."""
    labels = distinct(content.get("labels"), "labels")
    if None in labels or (most is not None and len(labels) > most):
        raise ValueError("there are more labels than the learner takes, or one is null")
    return labels


def _is_learner_of_rows(part: Any) -> bool:
    """Tell whether it has all that `Learner` has: sentences have no schema."""
    return hasattr(part, "targets") and hasattr(part, "schema")


def _sizes(part: Any) -> dict[str, int]:
    if not hasattr(part, "schema"):
        return {}
    n = part.targets.n_classes if _is_learner_of_rows(part) else 0
    return {"features": len(part.schema), "classes": n, "sides": max(2, n)}


def _read_learner(
    part: Any, content: dict[str, Any], names: list[Any], arrays: NamedArrays
) -> None:
    """Set what all learners have: schema, labels, number of examples, calibration."""
    if len(names) > (part.max_features or LIMIT):
        raise ValueError("there are more features than max_features")
    if names and part.hashing is not None:
        raise ValueError("features: a learner that hashes names keeps none")
    part.schema = Schema(names, part.max_features or LIMIT, part.hashing, part.missing)
    if "missing" in arrays:
        found = arrays.take("missing", Field((N_ROWS, len(names))), {})
        if not are_possible(found):
            raise ValueError("missing: the sums or counts of features contradict each other")
        part.schema.missing.keep(found)
    part.schema.n_ignored = as_int("n_ignored", content.get("n_ignored"), 0)
    is_sparse = part.model.is_sparse = checked(content.get("is_sparse"), bool, "is_sparse")
    if part.hashing is not None and not is_sparse:
        raise ValueError("is_sparse is false, but rows of hashed features are sparse")
    part.know_labels(labels_in(content, part.targets.labels.most))
    part.model.n_features = part.schema.buckets or len(names)
    part.model.n_learnt[0] = as_int("n_examples", content.get("n_examples"), 0)
    # After the labels, since the shape of the calibration depends on their number.
    new = part.targets.calibration
    part.targets.calibration = arrays.take("calibration", Field(new.shape, new.dtype), {})
