"""A second model beside the first: its options, the comparison, and what is said of it."""

import argparse
import os
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

from river import base

from connectors.batch import Batch
from connectors.source import Source, SourceAround
from streamsvm import Compare
from streamsvm.cli.learners import add_learner_options, model_from
from streamsvm.cli.parser import Parser, whole
from streamsvm.confidence.comparison import decision_in_words, difference_in_words
from streamsvm.errors import ParameterError
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model, Reported
from streamsvm.run.adapters import adapter_of, unwrapped
from streamsvm.run.sentence_feeder import are_sentences

WARM_UP: dict[str, Any] = {
    "--warm-up N": dict(
        type=whole(0),
        default=0,
        help="so many first examples are not compared, while a new candidate learns; default 0",
    ),
}

SHADOW: dict[str, Any] = {
    "--shadow LEARNER": "a candidate that learns beside the model, and is compared with it: a "
    "learner with its options as one text, such as 'lasvm --C 10', or a file written by --save",
    "--promote": dict(
        action="store_true",
        help="with --shadow: the candidate takes over as soon as it is better, by evidence that is "
        "wrong in 5%% of all runs at most; the report says when and why",
    ),
} | WARM_UP
"""The options for a candidate beside the model of a run."""

_BATCH = 256
"""Examples between two looks whether reading can stop."""


class _CandidateParser(Parser):
    """Reads the text of a candidate; errors are those of the option it was given by."""

    def error(self, message: str) -> NoReturn:
        """Refuse the text."""
        raise ParameterError(f"{self.prog}: {message}")


def candidate_from(options: argparse.Namespace, text: str, name: str) -> tuple[str, Any]:
    """Return the command's name of a learner, and the model that a text describes.

    `name` is the option of the text. Seed and columns are those of `options`.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ParameterError(f"{name} {text!r}: {str(error).lower()}") from error
    if not words:
        raise ParameterError(f"{name} {text!r}: name a learner, such as 'lasvm', or a file")
    if not words[0].startswith("-"):
        words.insert(0, "--model" if os.path.isfile(words[0]) else "--learner")
    parser = _CandidateParser(prog=f"{name} {text!r}", add_help=False)
    add_learner_options(parser)
    found = parser.parse_args(words)
    for of_run in ("seed", "max_classes", "columns"):
        setattr(found, of_run, getattr(options, of_run, None))
    try:
        model = model_from(found)[1]
    except ParameterError as error:
        raise ParameterError(f"{name} {text!r}: {error}") from error
    check_candidate(name, model)
    return found.learner, model


def check_candidate(name: str, model: Model) -> None:
    """Refuse a model that cannot be compared; `name` is the option that asks for it."""
    if are_sentences(model):
        raise ParameterError(f"{name}: not for learners of sentences; leave it out")
    if unwrapped(model) is not model:
        raise ParameterError(
            f"{name}: not for a {type(model).__name__}; leave out the options that make one, or "
            "name a file of the learner alone"
        )


def with_candidate(options: argparse.Namespace, model: Model) -> Model:
    """Return a model beside the candidate of --shadow; without one the model itself."""
    if getattr(options, "shadow", None) is None:
        if getattr(options, "promote", False) or getattr(options, "warm_up", 0):
            raise ParameterError("--promote, --warm-up: only with --shadow; leave them out")
        return model
    options.candidate, candidate = candidate_from(options, options.shadow, "--shadow")
    check_candidate("--shadow", model)
    action = "promote" if options.promote else None
    own = cast(base.Estimator, model)
    return Compare(own, candidate, on_decision=action, warm_up=options.warm_up)


def in_use(options: argparse.Namespace, model: Model, learner: Reported) -> tuple[Model, Reported]:
    """Return the model to go on with, and its learner, whose name `options` then have."""
    chosen, is_candidate = adapter_of(model).chosen
    if is_candidate:
        options.learner = options.candidate
    return chosen, learner if chosen is model else steps_of(chosen)[-1]


def took_over(record: dict[str, Any]) -> str:
    """Say when and why a candidate took over, by the record of it."""
    return f"took over after {record['n_seen']:,} examples: {decision_in_words(record)}"


def rows_of(comparison: dict[str, Any], level: float = 0.95) -> dict[str, str]:
    """Return name and text of what a report says of a comparison; nothing if there was none."""
    if not comparison:
        return {}
    record = comparison["record"]
    found = comparison if record is None else record
    named = {"candidate, b": decision_in_words(found) if record is None else took_over(record)}
    named["difference"] = f"{difference_in_words(found)} ({level:.0%}, at all moments)"
    if "only_b" in found:
        counts = ("both_right", "only_a", "only_b", "both_wrong")
        named["right"] = ", ".join(f"{name.replace('_', ' ')} {found[name]:,}" for name in counts)
    return named


class UntilKnown(SourceAround):
    """A source that ends soon after `is_known()`; all else is that of the source."""

    def __init__(self, source: Source, is_known: Callable[[], bool]) -> None:
        super().__init__(source)
        self._is_known = is_known

    def batches(self, size: int | None = None) -> Iterator[Batch]:
        """Yield parts of the source's batches."""
        for batch in self.source.batches(size):
            if not len(batch):
                yield batch
            for start in range(0, len(batch), _BATCH):
                yield batch.slice(start, min(_BATCH, len(batch) - start))
                if self._is_known():
                    return
