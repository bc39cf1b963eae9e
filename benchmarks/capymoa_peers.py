"""MOA's learners, through CapyMOA, with River's interface.

MOA is written in Java: CapyMOA starts a Java virtual machine when it is imported, which is why this
module imports it only when it is asked for. MOA must know the features, their values if they are
strings, and the labels before the first event; it is told those of the whole stream. An ensemble of
MOA's has 100 members by default, where one of River's has 10.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from river import base, preprocessing

_CLASSES = {
    "MOA ARF": "AdaptiveRandomForestClassifier",
    "MOA SRP": "StreamingRandomPatches",
    "MOA SAM-kNN": "SAMkNN",
}
NAMES = tuple(_CLASSES)

COMPARES_ROWS = ("MOA SAM-kNN",)
"""Strings are one-hot features for it, and a scaler is in front, as for River's neighbours."""

MOST_FEATURES = 1000
"""Ensembles of dense rows of more features, as of text, took gigabytes and seconds an event."""

_HOW = "python -m pip install 'capymoa>=0.15', and Java 17 or newer"


def check() -> None:
    """Start the Java virtual machine; end the program if CapyMOA cannot be used."""
    try:
        importlib.import_module("capymoa.classifier")
    except Exception as error:
        # CapyMOA has errors of its own, of modules and of Java.
        raise SystemExit(
            f"--capymoa: CapyMOA cannot be imported ({error}); install: {_HOW}"
        ) from error


class MOAClassifier(base.Classifier):
    """One of MOA's classifiers for a stream that is known.

    Parameters
    ----------
    name
        One of `NAMES`.
    events
        All events that will come, for their features' names, values and labels.

    """

    def __init__(self, name: str, events: list[tuple[dict[Any, Any], Any]]) -> None:
        core, stream = (importlib.import_module(f"capymoa.{m}") for m in ("core", "stream"))
        self._instance, self._labeled = core.Instance.from_array, core.LabeledInstance.from_array
        self._columns: dict[Any, int] = {}
        values: dict[Any, dict[str, int]] = {}
        for x, _ in events:
            for key, value in x.items():
                self._columns.setdefault(key, len(self._columns))
                if isinstance(value, str):
                    places = values.setdefault(key, {})
                    places.setdefault(value, len(places))
        self._values = values
        self._labels = sorted({y for _, y in events}, key=str)
        features = [f"f{j}" for j in range(len(self._columns))]
        categories = {f"f{self._columns[key]}": list(known) for key, known in values.items()}
        categories["label"] = [str(label) for label in self._labels]
        self._schema = stream.Schema.from_custom([*features, "label"], "label", categories)
        # What is absent is missing for trees, and 0 where rows are compared.
        self._absent = 0.0 if name in COMPARES_ROWS else np.nan
        self._scaler = preprocessing.StandardScaler() if name in COMPARES_ROWS else None
        make = getattr(importlib.import_module("capymoa.classifier"), _CLASSES[name])
        self._learner = make(schema=self._schema, random_seed=1)

    def _row(self, x: dict[Any, Any]) -> np.ndarray:
        if self._scaler is not None:
            x = self._scaler.transform_one(x)
        row = np.full(len(self._columns), self._absent)
        for key, value in x.items():
            row[self._columns[key]] = self._values[key][value] if isinstance(value, str) else value
        return row

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Return the predicted label; None if MOA has no votes yet."""
        found = self._learner.predict(self._instance(self._schema, self._row(x)))
        return None if found is None else self._labels[found]

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one event."""
        if self._scaler is not None:
            self._scaler.learn_one(x)
        place = self._labels.index(y)
        self._learner.train(self._labeled(self._schema, self._row(x), place))
