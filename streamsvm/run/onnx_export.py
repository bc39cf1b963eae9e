"""Trained models as ONNX graphs, for services that cannot have Python or a compiler.

The graphs have plain operators in double precision, and of ONNX-ML only what finds texts in a list:
its SVMClassifier computes in single precision, and has LIBSVM's votes of pairs where LaRank has a
score for each class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from connectors.encoding import OTHER
from streamsvm import __version__, kernels
from streamsvm.errors import ParameterError
from streamsvm.features.missing import PRESENT, REJECT, SUM, ZERO, is_usual
from streamsvm.features.names import Name
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.linear.linear_learner import LinearLearner
from streamsvm.models.contest.adaptive_model import AdaptiveModel
from streamsvm.models.kernel.ambiguous_solver import LinearAmbiguousSolver
from streamsvm.models.kernel.kernel_model import KernelModel
from streamsvm.models.kernel.lasvm_solver import PairsSolver
from streamsvm.models.outputs import Scores
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.monitor.watched import Model
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.adapters import adapter_of
from streamsvm.run.onnx_graph import Graph
from streamsvm.run.parts import MappedScaler, parts_of
from streamsvm.solvers.adaptive import combination
from streamsvm.solvers.lasvm_pairs.problems import REST
from streamsvm.support.locked import guarded
from streamsvm.support.rows import dense, sparse

LEAST = 1e-9
"""The least probability of a problem, and of a class: see `solvers.lasvm_pairs.scores`."""

_TRIED, _FAR = 100, 1e-5
"""On so many rows the expansion is compared with the margins; this far, as a share of its terms'
bounds |coefficient| sqrt(k(x, x) k(z, z)), it is another."""

_MOST_DIFFERENT = 0.02
"""A model is refused if more of these rows get another label."""

_LEAST = math.exp(-87.0)
"""The RBF, in single precision, is at least this, or 0: see `kernels.rbf`."""

_MOST = math.log(1.0 / LEAST - 1.0)
"""The largest logarithm of the odds of a problem."""

_INT64 = range(-(2**63), 2**63)


class _Expansion(NamedTuple):
    """f(x) = sum_s coefficients_s k(x, row_s) + bias."""

    kernel: Any
    rows: np.ndarray  # float64 (n, d)
    coefficients: np.ndarray  # float64 (n, outputs)
    bias: np.ndarray  # float64 (outputs,)


def to_onnx(model: Model, features: Sequence[Name] | None = None) -> Any:
    """Return a trained model as an ONNX model, which needs neither Python nor this package.

    Its input ``features`` is float64 (n, d), NaN where a value is missing; with columns of text
    there is an input ``texts``, strings (n, columns), "" where one is missing. Its outputs are
    ``label`` (n,), ``decision``, float64 (n,) for two labels, else a score for each label (n, k),
    and ``probabilities``, float64 (n, k). They are those of `predict_one`,
    `decision_function_many` and `predict_proba_one`, but for kernel values that are rounded to
    single precision there: decisions differ by 1e-6 of what their terms may add up to, at most. Its
    metadata have the ``features`` and ``texts`` in the order of the columns, and the ``classes`` in
    that of the probabilities, as JSON. ``onnx.save(to_onnx(model), "model.onnx")`` writes a file.

    Parameters
    ----------
    model
        A learner of two labels, `LASVMClassifier`, `LaRankClassifier`, `AmbiguousSVMClassifier`, or
        a linear learner;
        with an `RBF`, `Linear` or `Polynomial` kernel; alone, or behind a `StandardScaler`. Of
        `AdaptiveSVMClassifier` what it combines now, without the last label.
    features
        The names of the columns, in their order: all that the model knows, and no others; None:
        ``model.feature_names``. A text column, of which the model knows features such as
        ``colour=red``, is named by itself, ``colour``, or by these, as columns of 0 and 1.

    Returns
    -------
    An ``onnx.ModelProto``.

    Raises
    ------
    ParameterError
        The model cannot be exported, and why; or `features` are not those that it knows.
    ModelBusyError
        As for `learn_one` of the learner.
    ImportError
        The package onnx is not installed: ``pip install 'streamsvm[onnx]'``.

    """
    if (inner := _wrapped(model)) is not None:
        raise ParameterError(
            f"{type(model).__name__} cannot be exported to ONNX, as no graph can do what it adds: "
            f"export the model inside, to_onnx(model.{inner})"
        )
    scaler, learner = parts_of(model)
    if learner is None or isinstance(scaler, MappedScaler):
        raise ParameterError(
            f"{_shown(model)} cannot be exported to ONNX: use a learner, or StandardScaler | "
            "learner"
        )
    return _exported(learner, scaler, features, _shown(model))


@guarded
def _exported(
    learner: Learner,
    scaler: StandardScaler | None,
    features: Sequence[Name] | None,
    description: str,
) -> Any:
    _check(learner)
    if not (isinstance(learner, LinearLearner) or isinstance(learner.model, AdaptiveModel)):
        _kernel_model(learner)
    names = list(learner.schema.names)
    texts = _texts(names, features)
    own = [name for of in texts.values() for name in of]
    order = [name for name in (names if features is None else features) if name not in texts]
    columns = _columns(names, None if features is None else [*order, *own])
    graph = Graph()
    given = _given(graph, len(order), texts, columns)
    rows, classes = _prepared(graph, given, scaler, learner), _classes(learner)
    _decide(graph, *_decision(graph, learner, rows), learner, classes)
    about = {"features": json.dumps(order), "classes": json.dumps(classes)}
    about |= {"texts": json.dumps(list(texts))} if texts else {}
    about |= {"description": description, "release": __version__}
    return graph.model(len(order), len(texts), about)


def _shown(model: Model) -> str:
    steps = getattr(model, "steps", None)
    parts = steps.values() if isinstance(steps, dict) else [model]
    return " | ".join(type(part).__name__ for part in parts)


def _wrapped(model: Model) -> str | None:
    """Return the attribute of a wrapper that has its model; None: it is no wrapper."""
    return "model" if isinstance(model, TrackingMonitor) else adapter_of(model).attribute


def _check(learner: Learner) -> None:
    """Refuse a learner whose predictions no graph of dense numbers can have."""
    name = type(learner).__name__
    if learner.schema.buckets is not None:
        raise ParameterError(
            f"{name}(hashing={learner.schema.buckets}) cannot be exported to ONNX: its features "
            "are names that are hashed, and not columns"
        )
    if len(learner.classes) < 2:
        raise ParameterError(f"{name} has not learnt two labels yet: there is nothing to export")
    kinds = {type(label) for label in learner.classes}
    if len(kinds) > 1 or not kinds <= {bool, int, float, str}:
        raise ParameterError(
            f"{name} cannot be exported to ONNX: its labels must all be texts, whole numbers, "
            "fractions, or booleans"
        )
    if any(isinstance(y, int) and y not in _INT64 for y in learner.classes):
        raise ParameterError(f"{name} cannot be exported to ONNX: a label is beyond 64 bits")


def _texts(names: list[Name], features: Sequence[Name] | None) -> dict[str, list[str]]:
    """Return the columns of text among some, and the features of each that the model knows."""
    given, known = set(features or ()), set(names)
    sources = [name for name in given - known if isinstance(name, str)]
    found: dict[str, list[str]] = {}
    for name in names:
        if isinstance(name, str) and name not in given:
            # The longest: a column's name may have an equals sign.
            of = max((s for s in sources if name.startswith(f"{s}=")), key=len, default=None)
            if of is not None:
                found.setdefault(of, []).append(name)
    return {name: found[name] for name in features or () if name in found}


def _given(graph: Graph, d: int, texts: dict[str, list[str]], columns: np.ndarray) -> str:
    """Add the operators from the inputs to the features of the model; return their name."""
    parts = ["features"] if d else []
    for place, (column, own) in enumerate(texts.items()):
        values = [name[len(column) + 1 :] for name in own]
        text = graph.add("Gather", "texts", graph.constant([place]), axis=1)
        # As the sources have it: a text that is not known is another one, if there are such.
        others = values.index(OTHER) if OTHER in values else -1
        codes = graph.codes(text, values, of_empty=-1, of_others=others)
        is_it = graph.add("Equal", codes, graph.constant(np.arange(len(values))))
        one, none = graph.constant(1.0), graph.constant(np.nan)
        parts.append(graph.add("Where", is_it, one, none))
    whole = graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return graph.add("Gather", whole, graph.constant(columns), axis=1)


def _columns(names: list[Name], features: Sequence[Name] | None) -> np.ndarray:
    """Return the column of each feature of the model, int64 (d,)."""
    if features is None:
        if texts := [name for name in names if isinstance(name, str) and "=" in name]:
            raise ParameterError(
                f"the model has learnt text ({texts[0]!r}): name all columns, features=..., that "
                f"of the text, {texts[0].partition('=')[0]!r}, or a column of 0 and 1 for each text"
            )
        return np.arange(len(names))
    place = {name: i for i, name in enumerate(features)}
    if len(place) < len(features):
        raise ParameterError("features= has a name twice")
    if missing := [name for name in names if name not in place]:
        raise ParameterError(
            f"features= lacks {len(missing)} that the model knows: {missing[:10]}; columns may be "
            "missing everywhere (NaN), but they must be there"
        )
    if unknown := [name for name in features if name not in set(names)]:
        raise ParameterError(
            f"features= has {len(unknown)} that the model does not know: {unknown[:10]}; leave "
            "them out: the graph would not use them"
        )
    return np.array([place[name] for name in names], np.int64)


def _prepared(graph: Graph, given: str, scaler: StandardScaler | None, learner: Learner) -> str:
    """Add the operators from features to rows as the learner stores them; return their name."""
    x = given
    if scaler is not None:
        statistics, limit = scaler.statistics, np.inf if scaler.clip is None else scaler.clip
        names = learner.schema.names
        mean, factor, clip = np.zeros(len(names)), np.ones(len(names)), np.full(len(names), np.inf)
        for c, name in enumerate(names):
            if name in statistics:
                _, mean[c], variance = statistics[name]
                factor[c] = 1.0 / np.sqrt(variance) if variance > 0.0 else 0.0
                clip[c] = limit
        x = graph.add("Mul", graph.add("Sub", x, graph.constant(mean)), graph.constant(factor))
        x = graph.add("Max", graph.add("Min", x, graph.constant(clip)), graph.constant(-clip))
    filled = graph.add("Where", graph.add("IsNaN", given), graph.constant(_filling(learner)), x)
    return graph.add("Cast", filled, to=graph.float32)


def _filling(learner: Learner) -> np.ndarray:
    """Return what missing values count as, float64 (d,); NaN where they are refused."""
    missing, d = learner.schema.missing, len(learner.schema.names)
    found = np.zeros(d)
    if learner.is_sparse or missing.code == ZERO:
        return found
    statistics = missing.reserve(d)
    for c in range(d):
        if is_usual(statistics, c):
            mean = np.float32(statistics[SUM, c] / statistics[PRESENT, c])
            found[c] = np.nan if missing.code == REJECT else mean
    return found


def _decision(graph: Graph, learner: Learner, rows: str) -> tuple[str, str | None]:
    """Add the operators of the decision function; return their result, (n, outputs).

    Beside it probabilities, if they do not follow from these alone.
    """
    if isinstance(learner, LinearLearner):
        return _linear_margins(graph, learner, rows), None
    if isinstance(learner.model, AdaptiveModel):
        return _combined(graph, learner, learner.model, rows), None
    model = _kernel_model(learner)
    margins = _kernel_margins(graph, learner, model, rows, len(learner.schema.names))
    if not isinstance(model.solver, PairsSolver):
        return margins, None
    return _of_problems(graph, model, margins)


def _of_problems(graph: Graph, model: KernelModel, margins: str) -> tuple[str, str]:
    """Add scores and probabilities of classes: see `solvers.lasvm_pairs.scores`."""
    of, k = model.solver.state.problems, model.n_classes
    n = len(of.table)
    own, others = np.zeros((2, n, k))
    for i, (positive, negative) in enumerate(of.segments[["positive", "negative"]].tolist()):
        own[i, positive] = 1.0
        if negative != REST:
            others[i, negative] = 1.0
    if others.any():
        near = graph.add(
            "Max", graph.add("Min", margins, graph.constant(1.0)), graph.constant(-1.0)
        )
        scores = graph.add("MatMul", near, graph.constant((own - others) / (2.0 * k)))
        for test, of_votes in (("Greater", own), ("Less", others)):
            votes = graph.add(test, margins, graph.constant(0.0))
            votes = graph.add("Cast", votes, to=graph.float64)
            votes = graph.add("MatMul", votes, graph.constant(of_votes))
            scores = graph.add("Add", scores, votes)
    else:
        scores = graph.add("MatMul", margins, graph.constant(own))
    # The odds of a problem are exp(z): 1 / r - 1 = exp(-z) of its probability r.
    z = graph.add("Mul", margins, graph.constant(of.calibration[:, 0]))
    z = graph.add("Add", z, graph.constant(of.calibration[:, 1]))
    z = graph.add("Max", graph.add("Min", z, graph.constant(_MOST)), graph.constant(-_MOST))
    against = graph.affine(graph.add("Exp", graph.add("Neg", z)), own, 1.0)
    against = graph.add("Add", against, graph.affine(graph.add("Exp", z), others, 0.0))
    p = graph.add("Reciprocal", against)
    p = graph.add("Div", p, graph.add("ReduceSum", p, graph.constant([1]), keepdims=1))
    return scores, graph.add("Max", p, graph.constant(LEAST))


def _linear_margins(graph: Graph, learner: LinearLearner, rows: str) -> str:
    """Add the operators of a linear model; return their result."""
    turn, d = learner.targets.direction, len(learner.schema.names)
    weights = turn * learner.model.predicting_weights()[:, :d]
    x = graph.add("Cast", rows, to=graph.float64)
    return graph.affine(x, weights.T, turn * np.array(learner.model.biases()))


def _combined(graph: Graph, learner: Learner, model: AdaptiveModel, rows: str) -> str:
    """Add what an adaptive model combines; the last label is not known."""
    state, turn = model.combination, learner.targets.direction
    found = dict(_inputs(graph, learner, model, rows))
    if (alone := combination.alone(state)) >= 0:
        weights = np.where(np.arange(combination.N_INPUTS) == alone, combination.FIRST_WEIGHT, 0.0)
    else:
        weights = state.weights
    total = graph.constant(turn * weights[combination.CONSTANT] * (model.n_classes == 2))
    for m, input_m in found.items():
        total = graph.add("Add", graph.add("Mul", input_m, graph.constant(weights[m])), total)
    return total


def _inputs(
    graph: Graph, learner: Learner, model: AdaptiveModel, rows: str
) -> Iterator[tuple[int, str]]:
    """Add the inputs of a combination; yield the number and the name of each: see `combination`."""
    state, d = model.combination, len(learner.schema.names)
    turn, is_one = learner.targets.direction, learner.targets.has_one_margin
    for member in model.members:
        if member is not None:
            own, width = rows, d
            if member.bits is not None:
                width = len(member.bits.edges)
                columns = graph.constant(member.bits.columns.astype(np.int64))
                values = graph.add("Gather", rows, columns, axis=1)
                own = graph.add("Greater", values, graph.constant(member.bits.edges))
                own = graph.add("Cast", own, to=graph.float32)
            scores = _kernel_margins(graph, learner, member.model, own, width)
            if isinstance(member.model.solver, PairsSolver):
                scores = graph.add("Log", _of_problems(graph, member.model, scores)[1])
            yield member.slot, _cut(graph, scores, state.leads[member.slot], is_one)
    x = graph.add("Cast", rows, to=graph.float64)
    if learner.is_sparse:
        counts = np.log(state.counts[:, 1 : 1 + d] + 1.0)
        counts -= np.log(state.totals + state.info[combination.N_WORDS] + 1.0)[:, None]
        counts *= state.known[1 : 1 + d] > 0.0
        first = np.log(state.counts[:, 0] + 1.0)
        if is_one:
            counts, first = turn * np.diff(counts, axis=0), turn * np.diff(first)
        of_words = graph.affine(graph.add("Abs", x), counts.T / 3.0, first / 3.0)
        yield combination.BAYES, _cut(graph, of_words, state.leads[combination.BAYES], is_one)
    else:
        of_classes = _of_normals(graph, state, x, d, turn, is_one)
        yield combination.BAYES, _cut(graph, of_classes, state.leads[combination.BAYES], is_one)
        mean, factors = combination.standards(state, d)
        x = graph.add("Mul", graph.add("Sub", x, graph.constant(mean)), graph.constant(factors))
        x = _clipped(graph, x, combination.FAR)
    for m, w in zip((combination.FAST, combination.SLOW), state.linear, strict=True):
        score = graph.affine(x, turn * w[:, 1 : 1 + d].T, turn * w[:, 0])
        yield m, _cut(graph, score, state.leads[m], is_one)


def _of_normals(
    graph: Graph, state: combination.CombinationState, x: str, d: int, turn: float, is_one: bool
) -> str:
    """Add the scores of Gaussian naive Bayes, (n, outputs)."""
    means, variances, first = combination.normals(state, d)
    x = graph.add("Unsqueeze", x, graph.constant([1]))
    change = graph.add("Sub", x, graph.constant(means))
    square = graph.add("Div", graph.add("Mul", change, change), graph.constant(variances))
    square = graph.add("Min", square, graph.constant(combination.FURTHEST))
    total = graph.add("ReduceSum", square, graph.constant([2]), keepdims=0)
    if is_one:
        return graph.affine(
            total, turn / 6.0 * np.array([[1.0], [-1.0]]), turn * np.diff(first) / 3.0
        )
    return graph.affine(total, -np.eye(len(first)) / 6.0, first / 3.0)


def _clipped(graph: Graph, values: str, at: float) -> str:
    return graph.add("Max", graph.add("Min", values, graph.constant(at)), graph.constant(-at))


def _cut(graph: Graph, scores: str, lead: float, is_one: bool) -> str:
    """Bring scores, (n, outputs), to one scale, as `combination` does."""
    longest = combination.LONGEST
    if is_one:
        return _clipped(graph, scores, longest)
    best = graph.add("ReduceMax", scores, axes=[1], keepdims=1)
    is_best = graph.add("Equal", scores, best)
    others = graph.add("Where", is_best, graph.constant(-np.inf), scores)
    second = graph.add("ReduceMax", others, axes=[1], keepdims=1)
    # If all are equal.
    second = graph.add("Max", second, graph.constant(-1e300))
    centre = graph.add("Mul", graph.add("Add", best, second), graph.constant(0.5))
    scaled = graph.add("Sub", scores, centre)
    scaled = graph.add("Mul", scaled, graph.constant(2.0 / max(lead, 1e-6)))
    return graph.add("Mul", _clipped(graph, scaled, longest), graph.constant(0.5))


def _kernel_margins(graph: Graph, learner: Learner, model: KernelModel, rows: str, d: int) -> str:
    """Add the operators of a kernel expansion, also of each problem; return their result."""
    if model.preparation.factors is not None:
        rows = graph.add("Mul", rows, graph.constant(model.preparation.factors_in_use(d)))
    x = graph.add("Cast", rows, to=graph.float64)
    if isinstance(model.solver, LinearAmbiguousSolver):
        return graph.affine(x, *model.solver.predicting_weights(d))
    kernel, z, coefficients, bias = _expansion(model, learner, d)
    if isinstance(kernel, kernels.Linear):
        return graph.affine(x, kernel.scale * (z.T @ coefficients), bias)
    if isinstance(kernel, kernels.Polynomial):
        base = graph.affine(x, kernel.gamma * z.T, np.float64(kernel.coef0))
        values = graph.add("Pow", base, graph.constant(np.float64(kernel.degree)))
    else:
        # Centred, so that |x|^2 - 2 x z + |z|^2 loses no digits.
        centre = z.mean(axis=0)
        x, z = graph.add("Sub", x, graph.constant(centre)), z - centre
        norms = graph.add("ReduceSum", graph.add("Mul", x, x), graph.constant([1]), keepdims=1)
        products = graph.affine(x, -2.0 * z.T, (z**2).sum(axis=1))
        distances = graph.add("Max", graph.add("Add", products, norms), graph.constant(0.0))
        scaled = graph.add("Mul", distances, graph.constant(-kernel.gamma))
        values = graph.add("Exp", scaled)
        # So far away all values are 0 in single precision, and the bias alone decides.
        total = graph.add("MatMul", values, graph.constant(coefficients))
        least = graph.constant(_LEAST * np.abs(coefficients).sum(axis=0))
        is_far = graph.add("Less", graph.add("Abs", total), least)
        near = graph.add("Where", is_far, graph.constant(0.0), total)
        return graph.add("Add", near, graph.constant(bias))
    return graph.affine(values, coefficients, bias)


def _kernel_model(learner: Learner) -> KernelModel:
    """Return the model whose kernel expansion predicts; refuse a learner that has none."""
    model = learner.model
    if not isinstance(model, KernelModel):
        raise _refused(learner)
    is_known = learner.targets.has_one_margin or isinstance(model.outputs, Scores)
    if not (is_known or isinstance(model.solver, PairsSolver)):
        raise _refused(learner)
    kernel = model.kernel
    if type(kernel) not in (kernels.RBF, kernels.Linear, kernels.Polynomial):
        raise ParameterError(f"the kernel {type(kernel).__name__} cannot be exported to ONNX")
    return model


def _refused(learner: Learner) -> ParameterError:
    several = "" if learner.targets.has_one_margin else " of three or more labels"
    return ParameterError(
        f"{_shown(learner)}{several} cannot be exported to ONNX: its decision function is no "
        "kernel expansion with a bias; LASVMClassifier, LaRankClassifier and linear learners can, "
        "of two labels others, too"
    )


def _expansion(model: KernelModel, learner: Learner, d: int) -> _Expansion:
    """Return the expansion of a learner's model; refuse one with another decision function."""
    stored, alpha, _ = model.solver.expansion(d)
    is_of_problems = isinstance(model.solver, PairsSolver)
    k = 1 if model.outputs.has_one_margin else model.n_classes
    k = len(model.solver.biases) if is_of_problems else k
    coefficients = np.asarray(alpha, np.float64)
    coefficients = (coefficients[:, None] if coefficients.ndim == 1 else coefficients)[:, :k]
    kept = np.flatnonzero(np.abs(coefficients).max(axis=1, initial=0.0))
    if not len(kept):
        raise ParameterError(
            f"{_shown(learner)} has no support vectors: there is nothing to export"
        )
    rows, coefficients = dense(stored)[kept], coefficients[kept]
    bias = np.array(model.solver.biases or [0.0] * k)
    # The mean of votes, for one, is another function.
    some = np.concatenate([rows[:: 1 + len(rows) // _TRIED], np.zeros((1, d), np.float32)])
    if isinstance(model.solver, PairsSolver):
        stored = sparse(some) if model.is_sparse else some
        margins = model.solver.problem_margins(stored, model.sizes(d))
    else:
        margins = model.margins_of(model.preparation.unscaled(some)).reshape(len(some), -1)[:, :k]
    z = rows.astype(np.float64)
    found = _values(model.kernel, some.astype(np.float64), z) @ coefficients + bias
    sizes = np.sqrt(np.outer(_sizes(model.kernel, some), _sizes(model.kernel, z)))
    if not (np.abs(found - margins) <= _FAR * (sizes @ np.abs(coefficients) + np.abs(bias))).all():
        raise _refused(learner)
    differ = float((_chosen(found, is_of_problems) != _chosen(margins, is_of_problems)).mean())
    if differ > _MOST_DIFFERENT:
        raise ParameterError(
            f"{differ:.0%} of its own support vectors would get another label: coefficients up to "
            f"{np.abs(coefficients).max():.1e} cancel, so that the model's decisions are rounding "
            "errors; scale the features, or take another kernel or learner"
        )
    turn = learner.targets.direction
    return _Expansion(model.kernel, z, turn * coefficients, turn * bias)


def _chosen(decisions: np.ndarray, is_of_problems: bool) -> np.ndarray:
    """Return which output decides; of problems, what each does."""
    are_signs = is_of_problems or decisions.shape[1] == 1
    found: np.ndarray = decisions > 0.0 if are_signs else decisions.argmax(axis=1)
    return found


def _values(kernel: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the kernel values of rows, float64 (rows of x, rows of z)."""
    if isinstance(kernel, kernels.RBF):
        return np.array([kernel.in_double(((z - row) ** 2).sum(axis=1)) for row in x])
    return _of_products(kernel, x @ z.T)


def _sizes(kernel: Any, x: np.ndarray) -> np.ndarray:
    """Return k(x, x) of rows, float64 (n,): what rounding errors are relative to."""
    if isinstance(kernel, kernels.RBF):
        return np.ones(len(x))
    return _of_products(kernel, (x.astype(np.float64) ** 2).sum(axis=1))


def _of_products(kernel: Any, products: np.ndarray) -> np.ndarray:
    if isinstance(kernel, kernels.Linear):
        return np.asarray(kernel.scale * products)
    return np.asarray((kernel.gamma * products + kernel.coef0) ** kernel.degree)


def _classes(learner: Learner) -> list[Any]:
    """Return the labels in the order of `probabilities`."""
    return list(learner.labels)


def _decide(
    graph: Graph, decision: str, odds: str | None, learner: Learner, classes: list[Any]
) -> None:
    """Add what follows from the decision function: the outputs; `odds` are of several classes."""
    labels, double = graph.constant(np.array(classes)), graph.float64
    slope = 1.0 if odds is not None else learner.targets.calibration[0]
    shape = [] if learner.targets.has_one_margin else [len(classes)]
    if learner.targets.has_one_margin:
        offset = learner.targets.direction * learner.targets.calibration[1]
        z = graph.add("Mul", decision, graph.constant(slope))
        z = graph.add("Add", z, graph.constant(offset))
        z = graph.add("Max", graph.add("Min", z, graph.constant(30.0)), graph.constant(-30.0))
        # The exponentials of -z / 2 and z / 2, divided by their sum, are the probabilities.
        z = graph.add("MatMul", z, graph.constant(np.array([[-0.5, 0.5]])))
        decision = graph.add("Reshape", decision, graph.constant([-1]))
        # At 0 the label that came first is predicted.
        above = "Greater" if learner.targets.direction > 0.0 else "GreaterOrEqual"
        is_positive = graph.add(above, decision, graph.constant(0.0))
        place = graph.add("Cast", is_positive, to=graph.int64)
    else:
        place = graph.add("ArgMax", decision, axis=1, keepdims=0)
        most = graph.add("ReduceMax", decision, axes=[1], keepdims=1)
        z = graph.add("Mul", graph.add("Sub", decision, most), graph.constant(slope))
        z = graph.add("Max", z, graph.constant(-30.0))
    p = graph.add("Exp", z) if odds is None else odds
    total = graph.add("ReduceSum", p, graph.constant([1]), keepdims=1)
    graph.output("label", graph.add("Gather", labels, place), labels)
    graph.output("decision", decision, double, *shape)
    graph.output("probabilities", graph.add("Div", p, total), double, len(classes))
