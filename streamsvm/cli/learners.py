"""The command's options for the learner, and the model that they describe."""

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from streamsvm import (
    ActiveLearner,
    AdaptiveSVMClassifier,
    Chain,
    ConformalSets,
    Selective,
    StandardScaler,
    kernels,
    load,
)
from streamsvm.cli.parameters import add_options, in_help, parameters
from streamsvm.cli.parser import Group, Parser, add_table, limit, positive, say, whole
from streamsvm.errors import ModelFileError, ParameterError
from streamsvm.learners.bases.registry import RegisteredLearner, registered_learners
from streamsvm.model_files.container import steps_of
from streamsvm.monitor.watched import Model
from streamsvm.run.adapters import adapter_of
from streamsvm.run.sentence_feeder import are_sentences
from streamsvm.run.warm import KERNELS
from streamsvm.selection.asking import STRATEGIES
from streamsvm.selection.strategies import MOST_CANDIDATES, NAMES

_OF_KERNELS = ("gamma", "degree", "coef0")
_KERNEL_OPTIONS = ("kernel", *_OF_KERNELS)
_OF_SELECTIONS = ("selection", "candidates", "share")
ADDED_BY_HAND = ("kernel", "max_classes", "seed", "scale", "gamma", "selection", "candidates")
"""Parameters whose options are added by hand."""


PLUGINS = "streamsvm.plugins"
"""The group of entry points whose modules register kernels and learners of the user's."""


def load_plugins() -> None:
    """Import the modules of installed packages that register kernels or learners.

    One that cannot be imported is named on standard error, and left out.
    """
    for point in entry_points(group=PLUGINS):
        try:
            point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            say(f"streamsvm: plug-in {point.value} is left out: {reason}")


class _Choices(list[str]):
    """Names that an option takes; it takes MODULE:NAME, too, and the names of plug-ins."""

    def __contains__(self, name: object) -> bool:
        is_own = ":" in str(name) or name in kernels.registered()
        return is_own or super().__contains__(name)


def _kernel_name(text: str) -> str:
    """Return the name of a kernel; RBF, the name of the class, is rbf."""
    return text.lower() if text.lower() in KERNELS else text


def _imported(option: str, text: str) -> Any:
    """Return the object that MODULE:NAME means; modules of the working folder are found, too."""
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    try:
        return EntryPoint(option, text, PLUGINS).load()
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"{option} {text}: {error}") from error


def _learner_of(text: str) -> RegisteredLearner:
    """Return the learner of a name, or of MODULE:CLASS."""
    cls: Any = _imported("--learner", text) if ":" in text else None
    for learner in registered_learners():
        if learner.name == text or learner.cls is cls:
            return learner
    raise ParameterError(f"--learner {text}: its module must call register_learner with this class")


def _own_kernel(options: argparse.Namespace) -> Any:
    """Return a kernel of the user's, with the parameters that are options."""
    text = options.kernel
    kernel: Any = _imported("--kernel", text) if ":" in text else kernels.registered()[text]
    types = kernels.registered().values()
    if kernel not in types and type(kernel) not in types:
        kernels.check_kernel(kernel)
    given = {name: float(value) for name, value in _given(options, _OF_KERNELS).items()}
    if unknown := sorted(given.keys() - set(kernel._fields)):
        raise ParameterError(f"--{unknown[0]}: not for --kernel {text}; leave it out")
    if isinstance(kernel, type):
        parameters_of = inspect.signature(kernel).parameters.values()
        needed = {p.name for p in parameters_of if p.default is p.empty} - given.keys()
        if missing := sorted(needed.intersection(_OF_KERNELS)):
            raise ParameterError(f"--kernel {text} needs --{missing[0]}, too")
        if needed:
            raise ParameterError(
                f"--kernel {text} needs {min(needed)}, for which there is no option: give it a "
                "default, or name a kernel with its parameters in the module"
            )
    try:
        found = (kernel if isinstance(kernel, type) else kernel._replace)(**given)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"--kernel {text}: {error}") from error
    kernels.check_kernel(found)
    return found


_NEW: dict[str, Any] = {
    "--model MODEL": "file written by --save: go on with it, as it is",
    "--learner": dict(
        help="default: adaptive, which follows streams that change; lasvm with --epochs or options "
        "that adaptive lacks; in replay larank, if the first 1,000 rows have more than 50 classes"
    ),
    "--template FILE": "of learners of sentences: templates of features in the format of CRF++; "
    "default: a window of two tokens, and pairs",
    "--kernel": dict(
        type=_kernel_name,
        choices=_Choices([*KERNELS, "MODULE:NAME"]),
        help="default: rbf; none for ambiguous, sgd, sgdqn; MODULE:NAME: a kernel of your own",
    ),
    "--gamma": dict(
        type=float,
        help="width (rbf) or factor (polynomial); default for rbf: from the data seen; "
        "--learner ambiguous needs it",
    ),
    "--degree": dict(type=whole(1, 100), help="polynomial; default 3"),
    "--coef0": dict(type=float, help="polynomial; default 1"),
}
_SELECTION: dict[str, Any] = {
    "--selection": dict(
        choices=sorted(NAMES),
        help="learn only some examples, chosen among those that wait: active and autoactive: those "
        "nearest to the border; gradient: the most misclassified; random: to compare; not for "
        "adaptive; default: all are learnt",
    ),
    "--candidates N": dict(
        type=whole(1, MOST_CANDIDATES),
        help="with --selection: how many wait; default 50, of autoactive 100; without, of larank: "
        "how many random patterns OPTIMIZE picks the best from; default 16",
    ),
    "--share S": dict(
        type=positive,
        help="with --selection, but autoactive: the share of examples that is learnt; default .1",
    ),
}
_LABELS: dict[str, Any] = {
    "--label-budget S": dict(
        type=positive,
        help="ask for the labels of this share of the examples only, those that the model is least "
        "sure of, and learn these: all others are predicted; default: all are learnt",
    ),
    "--label-strategy": dict(
        choices=STRATEGIES,
        help="with --label-budget: quantile (default): those among the least certain of the last "
        "200; uncertainty: by a randomised threshold; random: to compare",
    ),
}
_SETS: dict[str, Any] = {
    "--coverage S": dict(
        type=positive,
        help="predict sets of labels, too, which have the true one in this share of the examples; "
        "default: none",
    ),
    "--by-class": dict(
        action="store_true", help="with --coverage: in this share of those of each label"
    ),
}
_ANSWERS: dict[str, Any] = {
    "--error S": dict(
        type=positive,
        help="answer only where this share of the answers is wrong at most, from .0001 to .5; "
        "default: all are answered",
    ),
    "--audit S": dict(
        type=positive,
        help="with --error: leave this share of the examples, drawn at random, without an answer, "
        "and judge by these, as labels of answers do not come; default: all labels come",
    ),
}
_SCALER: dict[str, Any] = {
    "--scale": dict(
        action=argparse.BooleanOptionalAction,
        help="standardise numeric features online; default: on, but for rbf without --gamma, where "
        "the learner itself scales the rows if that errs less on the first 1,024 examples",
    ),
    "--clip N": dict(
        type=limit,
        default=argparse.SUPPRESS,
        help="implies --scale: scaled values lie within -N .. N, and a value far outside of what "
        "was seen hardly changes the scale; none: no limit; default 10",
    ),
    "--reject N": dict(
        type=limit,
        default=argparse.SUPPRESS,
        help="implies --scale: an example with a value more than N standard deviations from its "
        "mean is a bad example (see --on-error); default none",
    ),
}


def add_learner_options(group: Group) -> None:
    """Add the options of learner and kernel; an option not given means the class's default."""
    names = _Choices([*(learner.name for learner in registered_learners()), "MODULE:CLASS"])
    add_table(group, _NEW | {"--learner": {"choices": names} | _NEW["--learner"]})
    add_options(group, parameters(ADDED_BY_HAND))
    add_table(group, _SELECTION | _LABELS | _SETS | _ANSWERS | _SCALER)


def add_learner_group(parser: Parser) -> None:
    """Add the options of learner and kernel as a group; help shows those of one learner."""
    group = parser.add_argument_group("learner")
    add_learner_options(group)

    def show(arguments: Sequence[str]) -> None:
        named = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        named.add_argument("--learner")
        try:
            name = named.parse_known_args(arguments)[0].learner
        except argparse.ArgumentError:
            return  # a name is missing: the parser itself says so
        if name is not None:
            parser.check("learner", name)
        try:
            learner = _learner_of(name or "adaptive")
        except ParameterError as error:
            parser.error(str(error))
        parser.show_only(_options_of(learner), _options())
        group.description = (
            f"Options of {learner.name}{', the default' if name is None else ''}. --help --learner "
            "NAME shows those of another learner; docs/command.md has those of all."
        )

    parser.before_help = show


def _names_in(table: Iterable[str]) -> set[str]:
    """Return the names of the options of a table, as those of their values."""
    return {key.split()[0].strip("-").replace("-", "_") for key in table}


_OF_ROWS = _LABELS | _SETS | _ANSWERS | _SCALER


def _options() -> set[str]:
    """Return the names of all options of learners."""
    names = {parameter.name for parameter in parameters(ADDED_BY_HAND)}
    return names | _names_in(_NEW | _SELECTION | _OF_ROWS)


def _options_of(learner: RegisteredLearner) -> dict[str, str | None]:
    """Return the options that a learner takes, with their texts if these are of its docstring."""
    known = inspect.signature(learner.cls).parameters.keys()
    shown: dict[str, str | None] = dict.fromkeys(("model", "learner"))
    for option in _KERNEL_OPTIONS if "kernel" in known else ():
        shown[option] = None
    for option in _OF_SELECTIONS if "selection" in known else ():
        shown[option] = None
    if "candidates" in known:
        shown["candidates"] = None
    if learner.takes == "sentences":
        shown["template"] = None
    if learner.takes == "rows":
        shown |= dict.fromkeys(_names_in(_OF_ROWS))
    for parameter in parameters(ADDED_BY_HAND):
        if learner.name in parameter.texts:
            shown[parameter.name] = in_help(parameter.texts[learner.name])
    return shown


def kernel_from(options: argparse.Namespace) -> Any:
    """Return the kernel of the options; None: an RBF whose gamma follows the data."""
    if options.kernel is not None and options.kernel not in KERNELS:
        return _own_kernel(options)
    given = _given(options, _OF_KERNELS)
    used = {"linear": (), "polynomial": _OF_KERNELS}
    for name in given:
        if name not in used.get(options.kernel, ("gamma",)):
            kernel = options.kernel or "rbf"
            raise ParameterError(f"--{name}: not for --kernel {kernel}; leave it out")
    if options.kernel == "linear":
        return kernels.Linear()
    if options.kernel == "polynomial":
        return kernels.Polynomial(**given)
    return kernels.RBF(**given) if given else None


def _selection_from(options: argparse.Namespace) -> Any:
    """Return the selection of the options, or None."""
    given = _given(options, ("candidates", "share"))
    if options.selection is None:
        return None
    rule = NAMES[options.selection]
    for name in given.keys() - inspect.signature(rule).parameters:
        raise ParameterError(f"--{name}: not for --selection {options.selection}; leave it out")
    seed = {"seed": options.seed} if options.selection == "random" else {}
    return rule(**given, **seed)


def _given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return those of some options that were given."""
    values = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _scaler_from(options: argparse.Namespace, scales_itself: bool) -> StandardScaler | None:
    """Return the scaler of the options, if there is one.

    `scales_itself` is whether the learner scales rows unless it is told otherwise.
    """
    given = {name: getattr(options, name) for name in ("clip", "reject") if name in options}
    if options.scale is False or (options.scale is None and not given and scales_itself):
        for name in given:
            raise ParameterError(
                f"--{name}: not with --no-scale, as no means are known; leave it out"
            )
        return None
    return StandardScaler(**given)


def _default_learner(options: argparse.Namespace, given: dict[str, Any]) -> str:
    """Return the learner if none was asked for: adaptive, or LASVM for what only that takes."""
    known = inspect.signature(AdaptiveSVMClassifier).parameters.keys()
    is_balanced = given.get("class_weight") == "balanced"
    has_epochs = getattr(options, "epochs", 1) > 1
    return "lasvm" if given.keys() - known or is_balanced or has_epochs else "adaptive"


def model_from(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the learner of the options, and the model: it, a pipeline, or what asks for labels."""
    learner, model = _learner_and_model(options)
    if options.coverage is not None:
        if adapter_of(model).has_sets or options.label_budget is not None:
            raise ParameterError("--coverage: not with --label-budget, nor if --model has sets")
        if options.error is not None:
            raise ParameterError("--coverage, --error: sets or answers; give one of both")
        return learner, ConformalSets(model, options.coverage, options.by_class)
    if options.error is not None:
        if adapter_of(model).answers or options.label_budget is not None:
            raise ParameterError("--error: not with --label-budget, nor if --model has it")
        return learner, Selective(
            model, options.error, audit=options.audit or 0.0, seed=options.seed
        )
    if options.audit is not None:
        raise ParameterError("--audit: only with --error; leave it out")
    if options.by_class:
        raise ParameterError("--by-class: only with --coverage; leave it out")
    if options.label_budget is not None:
        if adapter_of(model).asks:
            raise ParameterError("--label-budget: --model asks for labels already; leave it out")
        if are_sentences(model):
            raise ParameterError("--label-budget: not for learners of sentences; leave it out")
        strategy = options.label_strategy or STRATEGIES[0]
        return learner, ActiveLearner(model, options.label_budget, strategy, seed=options.seed)
    if options.label_strategy is not None:
        raise ParameterError("--label-strategy: only with --label-budget; leave it out")
    return learner, model


def _learner_and_model(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the learner of the options, and the model: the learner, or a scaler and it."""
    names = [parameter.name for parameter in parameters(ADDED_BY_HAND)]
    # A learner of the user's may have parameters that no option is for.
    given = _given(options, (*names, *_KERNEL_OPTIONS, *_OF_SELECTIONS))
    if options.model is not None:
        return _loaded(options, given)
    found = _learner_of(options.learner or _default_learner(options, given))
    options.learner, cls = found.name, found.cls
    known = inspect.signature(cls).parameters.keys()
    unknown = given.keys() - known - (set(_KERNEL_OPTIONS) if "kernel" in known else set())
    if options.selection is not None and "selection" in known:
        unknown -= set(_OF_SELECTIONS)
    others = {"rows": ("template",), "sentences": ("scale", "clip", "reject")}
    both = (*others["rows"], *others["sentences"])
    unknown |= _given(options, others.get(found.takes, both)).keys()
    if "share" in given and options.selection is None:
        raise ParameterError("--share: only with --selection; leave it out")
    if "candidates" in unknown and options.selection is None:
        raise ParameterError("--candidates: only with --selection, or for --learner larank")
    if unknown:
        wrong = ", ".join("--" + name.replace("_", "-") for name in sorted(unknown))
        raise ParameterError(f"{wrong}: not for --learner {options.learner}; leave it out")
    selection = _selection_from(options)
    given = {name: value for name, value in given.items() if name not in _KERNEL_OPTIONS}
    if selection is not None:
        given = {name: value for name, value in given.items() if name not in _OF_SELECTIONS}
        given["selection"] = selection
    if "kernel" in known:
        given["kernel"] = kernel_from(options)
        is_missing = given["kernel"] is None and options.kernel == "rbf"
        if is_missing and not getattr(cls, "chooses_gamma", True):
            name = options.learner
            raise ParameterError(f"--kernel rbf: --learner {name} chooses no gamma: add --gamma")
    if "seed" in known:
        given["seed"] = options.seed
    if "max_classes" in known and getattr(options, "max_classes", None) is not None:
        given["max_classes"] = options.max_classes
    before: Any = None
    if found.takes == "sentences":
        before = _chain_from(options)
    elif found.takes == "records":
        pass  # it reads words
    else:
        scales_itself = "scale" in known and given.get("kernel") is None
        before = _scaler_from(options, scales_itself)
        if scales_itself and (before is not None or options.scale is False):
            # Rows are scaled already, or shall not be: only gamma is on trial.
            given["scale"] = False
    learner = cls(**given)
    return learner, learner if before is None else before | learner


def _chain_from(options: argparse.Namespace) -> Chain:
    """Return what makes features of sentences; ``options.columns`` are those of their tokens."""
    if options.kernel == "rbf" and options.gamma is None:
        raise ParameterError("--kernel rbf: learners of label sequences need --gamma, too")
    template = None
    if options.template is not None:
        try:
            template = Path(options.template).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ParameterError(f"--template {options.template}: save it as UTF-8") from error
    return Chain(template, columns=options.columns)


def model_of(options: argparse.Namespace) -> Model | None:
    """Return the model that ``--model`` names, which is read once; None: it names none."""
    if options.model is not None and "loaded" not in options:
        options.loaded = load(options.model)
    return getattr(options, "loaded", None)


def _loaded(options: argparse.Namespace, given: dict[str, Any]) -> tuple[Any, Any]:
    """Return the learner in a saved model, and the model; refuse options of new ones."""
    given |= _given(options, ("learner", "template", "scale", "clip", "reject"))
    for name in given:
        raise ParameterError(
            f"--{name.replace('_', '-')}: --model has its own learner and parameters; leave "
            "one of both out"
        )
    model = model_of(options)
    learner = steps_of(model)[-1]
    for known in registered_learners():
        if known.cls is type(learner):
            options.learner = known.name
            return learner, model
    raise ModelFileError(f"--model {options.model} holds no learner")
