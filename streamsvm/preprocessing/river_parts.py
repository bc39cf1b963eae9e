"""Transformers of River in model files: their state as JSON values, never as code.

A `FuncTransformer` has the name of its function, which who loads the file must give. Exactly the
classes below, not subclasses, which may do anything; and of `StatImputer` the
statistics `Mean`, `Mode`, `Min`, `Max`, and constants.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from river import compose, preprocessing, stats

from streamsvm.errors import ModelFileError
from streamsvm.model_files.codec import functions, name_of, register
from streamsvm.model_files.json_values import as_json, checked, checked_scalar

_MOST_COUNT = 2**63 - 1


def _pairs(values: Mapping[Any, Any], what: str) -> list[list[Any]]:
    """Return a dict as a list of pairs of JSON values; JSON's own keys are strings only."""
    return [[as_json(name, "a name"), as_json(value, what)] for name, value in values.items()]


def _dict_of(pairs: Any, what: str, *kinds: type) -> dict[Any, Any]:
    """Return the dict of a list of pairs; its values are of `kinds`, if any are given."""
    found = {}
    for pair in checked(pairs, list, what):
        name, value = (checked_scalar(part, what) for part in checked(pair, list, what))
        if kinds and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise ValueError(f"{what}: {value!r:.40} is none")
        found[name] = value
    return found


def _counts_of(pairs: Any, what: str) -> dict[Any, int]:
    found = _dict_of(pairs, what, int)
    if not all(0 <= n <= _MOST_COUNT for n in found.values()):
        raise ValueError(f"{what}: one is out of range")
    return found


def _without_window(part: Any) -> None:
    if part.window_size is not None:
        raise ModelFileError(
            f"River's {type(part).__name__}(window_size={part.window_size}) cannot be saved: use "
            "it without a window, or streamsvm.StandardScaler, which follows changes"
        )


# OneHotEncoder


def _write_one_hot(part: Any) -> dict[str, Any]:
    def sets(values: Mapping[Any, Iterable[Any]]) -> list[Any]:
        return [
            [as_json(name, "a name"), [as_json(value, "a category") for value in of_name]]
            for name, of_name in values.items()
        ]

    return {
        "drop_zeros": bool(part.drop_zeros),
        "drop_first": bool(part.drop_first),
        "is_fixed": part.categories is not None,
        "values": sets(part.values),
        # The order of the features of a transformed event.
        "zeros": list(part._zero_dict),
    }


def _read_one_hot(content: dict[str, Any]) -> Any:
    values = {}
    for pair in checked(content.get("values"), list, "values"):
        name, of_name = checked(pair, list, "values")
        known = (checked_scalar(value, "a category") for value in checked(of_name, list, "values"))
        values[checked_scalar(name, "a name")] = set(known)
    flags = [checked(content.get(name), bool, name) for name in ("drop_zeros", "drop_first")]
    is_fixed = checked(content.get("is_fixed"), bool, "is_fixed")
    part = preprocessing.OneHotEncoder(values if is_fixed else None, *flags)
    if not is_fixed:
        part.values = defaultdict(set, values)
    zeros = [checked(name, str, "zeros") for name in checked(content.get("zeros"), list, "zeros")]
    made = {f"{name}_{value}" for name, of_name in values.items() for value in of_name}
    if set(zeros) != (set() if flags[0] else made):
        raise ValueError("zeros are not those of the values")
    part._zero_dict = dict.fromkeys(zeros, 0)
    return part


# Scalers


def _write_scaler(part: Any) -> dict[str, Any]:
    _without_window(part)
    return {
        "with_std": bool(part.with_std),
        "counts": _pairs(part.counts, "a count"),
        "means": _pairs(part.means, "a mean"),
        "vars": _pairs(part.vars, "a variance"),
    }


def _read_scaler(content: dict[str, Any]) -> Any:
    part = preprocessing.StandardScaler(checked(content.get("with_std"), bool, "with_std"))
    part.counts = Counter(_counts_of(content.get("counts"), "counts"))
    part.means.update(_dict_of(content.get("means"), "means", int, float))
    part.vars.update(_dict_of(content.get("vars"), "vars", int, float))
    if any(value < 0 for value in part.vars.values()):
        raise ValueError("a variance is below 0")
    return part


def _write_min_max(part: Any) -> dict[str, Any]:
    _without_window(part)
    least = {name: value.min for name, value in part.min.items()}
    most = {name: value.max for name, value in part.max.items()}
    return {"min": _pairs(least, "a minimum"), "max": _pairs(most, "a maximum")}


def _read_min_max(content: dict[str, Any]) -> Any:
    part = preprocessing.MinMaxScaler()
    for name, value in _dict_of(content.get("min"), "min", int, float).items():
        part.min[name].min = value
    for name, value in _dict_of(content.get("max"), "max", int, float).items():
        part.max[name].max = value
    return part


# Imputers


def _write_statistic(feature: Any, stat: Any) -> list[Any]:
    name = as_json(feature, "a name")
    if type(stat) is stats.Mean:
        return [name, "mean", [as_json(stat.n, "a count"), as_json(stat._mean, "a mean")]]
    if type(stat) is stats.Min:
        return [name, "min", as_json(stat.min, "a minimum")]
    if type(stat) is stats.Max:
        return [name, "max", as_json(stat.max, "a maximum")]
    if type(stat) is stats.Mode:
        return [name, "mode", [int(stat.k), _pairs(stat.counts, "a count")]]
    if isinstance(stat, stats.base.Univariate):
        raise ModelFileError(
            f"River's StatImputer with {type(stat).__name__} cannot be saved: model files hold "
            "Mean, Mode, Min, Max and constants"
        )
    return [name, "constant", as_json(stat, "a constant")]


def _read_statistic(entry: Any) -> tuple[Any, Any]:
    feature, kind, state = checked(entry, list, "an imputer")
    stat: Any
    if kind == "mean":
        n, mean = checked(state, list, "a mean")
        stat = stats.Mean()
        stat.n, stat._mean = float(n), float(mean)
        if not 0 <= stat.n < math.inf:
            raise ValueError("the count of a mean is out of range")
    elif kind == "min":
        stat = stats.Min()
        stat.min = _number(state)
    elif kind == "max":
        stat = stats.Max()
        stat.max = _number(state)
    elif kind == "mode":
        k, counts = checked(state, list, "a mode")
        stat = stats.Mode(checked(k, int, "k"))
        stat.counts.update(_counts_of(counts, "counts of a mode"))
    elif kind == "constant":
        stat = checked_scalar(state, "a constant")
    else:
        raise ValueError(f"{kind!r:.40} is no statistic")
    return checked_scalar(feature, "a name"), stat


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("an extreme is no number")
    return value


def _write_imputer(part: Any) -> dict[str, Any]:
    shared = [id(stat) for _, stat in part.imputers if isinstance(stat, stats.base.Univariate)]
    if len(set(shared)) < len(shared):
        raise ModelFileError("a StatImputer cannot be saved if features share one statistic")
    return {"imputers": [_write_statistic(feature, stat) for feature, stat in part.imputers]}


def _read_imputer(content: dict[str, Any]) -> Any:
    entries = checked(content.get("imputers"), list, "imputers")
    return preprocessing.StatImputer(*map(_read_statistic, entries))


def _write_previous(part: Any) -> dict[str, Any]:
    return {"latest": _pairs(part._latest, "a value")}


def _read_previous(content: dict[str, Any]) -> Any:
    part = preprocessing.PreviousImputer()
    part._latest.update(_dict_of(content.get("latest"), "latest"))
    return part


def _write_function(part: Any) -> dict[str, Any]:
    return {"function": name_of(part.func)}


def _read_function(content: dict[str, Any]) -> Any:
    name = checked(content.get("function"), str, "function")
    if (function := functions.get().get(name)) is None:
        module, _, own = name.partition(":")
        raise ModelFileError(
            f"the model calls the function {name!r:.100}: to allow that, import {module:.100} and "
            f"give it, load(path, functions=[{module:.100}.{own:.100}])"
        )
    return compose.FuncTransformer(function)


# Class, how it is written and read, and the settings that a run which goes on must have, too.
_PARTS: list[Any] = [
    (
        preprocessing.OneHotEncoder, _write_one_hot, _read_one_hot,
        lambda part: f"{part.drop_zeros}, {part.drop_first}, {part.categories is not None}",
    ),
    (preprocessing.StandardScaler, _write_scaler, _read_scaler, lambda part: str(part.with_std)),
    (preprocessing.MinMaxScaler, _write_min_max, _read_min_max, lambda part: "used"),
    (
        preprocessing.StatImputer, _write_imputer, _read_imputer,
        lambda part: repr([entry[:2] for entry in _write_imputer(part)["imputers"]]),
    ),
    (preprocessing.PreviousImputer, _write_previous, _read_previous, lambda part: "used"),
    (
        compose.FuncTransformer, _write_function, _read_function,
        lambda part: str(_write_function(part)["function"]),
    ),
]  # fmt: skip
for _cls, _write, _read, _settings in _PARTS:
    register(_cls, write=_write, read=_read, settings=_settings)
