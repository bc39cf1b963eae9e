"""Scores of several predictors are combined, by weights that are learnt online.

Of each event there are the inputs

    f_1 .. f_3   the scores of up to three kernel models, the first of them the main one,
    f_4, f_5     those of two passive-aggressive linear models, which follow fast and slowly,
    f_6          the log odds of naive Bayes, divided by 3: of sparse rows multinomial, of dense
                 ones Gaussian,
    f_7          2 for the last label, if it is known when the event comes: labels often repeat,
    f_8          1, the constant,

each cut at +-3, and 0 if there is none. Of two classes the positive one is predicted if z = w . f >
0, and its probability is p = 1 / (1 + exp(-z)). Weights w begin with 1.5 for the main model and 0
for all else, and are learnt by online Newton steps on the logistic loss -log p(y), which forget:

    h = max(p (1 - p), .02),   A <- .998 A + h f f',   w <- w - (A + 3 I)^-1 (p - y) f.

Of K classes an input is a vector of scores: less the mean of its two best ones, divided by the
running mean of half their distance, so that all inputs have one scale, and cut; p is a softmax of
z_k = w . f_k, and h f f' becomes sum_k p_k f_k f_k' - (sum_k p_k f_k)(sum_k p_k f_k)'. All classes
share the weights, and there is no constant. Steps, curvatures, errors and C of the linear models
count as much as the example weighs, its class weight included.

The last label counts only where there are clearly fewer errors with it. An input that has erred
clearly less of late than the combination predicts alone; if labels come late, one that has not
erred clearly more.

If the label of an event comes late, the weights learn from the inputs that the event had when it
was predicted, not from those of models that have learnt its neighbours meanwhile. So inputs of
predictions are kept until their labels come, in a table by the digest of the row.

What would be lost without an input m is told by the second-order expansion of the loss, H = A + 3 I
being its curvature (Hassibi, Stork, Second order derivatives for network pruning, NIPS 1992):
w_m^2 / (2 [H^-1]_mm), summed over the examples that are not forgotten.

Gaussian naive Bayes has a mean and a variance of each feature in each class, over about 1,000
examples of the class of late. With c of them these are (c m + m') / (c + 1) and (c v + 5 v') / (c +
5) + v' / 1000, where m' and v' are those of all classes: few examples say little.

The linear models are PA-I (Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online
Passive-Aggressive Algorithms, JMLR 7, 2006) with C 1 and .01, on rows that are standardised by
running moments; sparse rows are taken as they are. Newton steps: Hazan, Agarwal, Kale, Logarithmic
regret algorithms for online convex optimization, Machine Learning 69 (2007).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsvm._compile import compiled, compiled_inner
from streamsvm.solvers.adaptive.last_label import digest
from streamsvm.support import states
from streamsvm.support.calibration import label_index
from streamsvm.support.declaration import (
    COUNT,
    NOT_NEGATIVE,
    Field,
    NamedArrays,
    Range,
    Sizes,
    field,
)
from streamsvm.support.states import declare

N_MODELS = 3
FAST, SLOW, BAYES, LAST, CONSTANT = range(N_MODELS, N_MODELS + 5)
N_INPUTS = N_MODELS + 5
"""The inputs: the scores of the kernel models, of the two linear ones, of naive Bayes, the last
label, and 1."""

ONLY, NEXT, LATER = -1, -2, -3
"""In place of the index of a label: a row that is only predicted, one that is the next event, or
one whose label will come later."""

N, LAST_LABEL, N_WORDS, IS_LATE, N_KEPT, WIDTH = range(6)
N_INFO = 6
"""Examples learnt; 1 + the index of the last label, 0: none; how many words have come; 1 if labels
come late; how many predictions were kept so far; 1 + the last column that examples had."""

COMBINED, WITHOUT_LAST = N_INPUTS, N_INPUTS + 1
"""The entries of `errors` behind those of the inputs."""

MEAN, SQUARES = range(2)
"""Rows of `moments`: the mean of each feature, and the sum of squares about it."""

OF_NORMAL, OF_LATE = range(2)
"""Columns of `n_of_class`: how many examples the means and variances of a class stand for, and how
much the last ones of the class weigh."""

FIRST_WEIGHT = 1.5
LONGEST = 3.0
FORGET = 0.998
PRIOR = 3.0
FLATTEST = 0.02
FAST_C, SLOW_C = 1.0, 0.01
FAR = 10.0
"""Standardised values are cut at this, and from `FEWEST` examples on those that moments learn."""
FEWEST = 30
NORMALS_OF = 1000
"""Means and variances of a class are over about so many of its examples."""
FURTHEST = 25.0
"""What the squared distance of one feature from a mean counts as at most, in variances."""
LARGEST_LEAD = 100.0
"""What a lead counts as at most."""
LEAD, LEAD_IF_LATE = 0.01, -0.01
"""An input predicts alone if its share of errors is smaller by this than that of all combined. The
second, if labels come late: weights are then of what was before."""
LEAD_OF_LAST = 0.02
"""The last label counts if there are fewer errors with it by this: else one event would be
predicted otherwise than the same event after it."""
LEADS_OF, ERRORS_OF_LATE = 500, 2000
"""Leads, and shares of errors, are means over about so many examples; the second, if labels come
late."""
FEWEST_WAITING, MOST_WAITING, WAYS = 64, 4096, 8
"""There are places for so many predictions at first, and at most, powers of two; of many classes
fewer. Each may be at one of `WAYS`, which follow from the digest of its row; the oldest leaves."""
UNCOUNTED = 128
"""The marks of an example of weight 0."""
_MOST_KEPT = 1 << 20
"""So many numbers are kept of them, in all."""
_TINY = 1e-12


class CombinationState(NamedTuple):
    """What was learnt; outputs are 1 for two classes, and that of the classes for more."""

    weights: np.ndarray = field(N_INPUTS)  # w
    curvature: np.ndarray = field(N_INPUTS, N_INPUTS)  # A
    leads: np.ndarray = field(N_INPUTS)
    """Running means of the lead of the best score; of several classes only."""
    linear: np.ndarray = field(2, "outputs", "inputs")
    """The weights of the linear models: of a constant 1, then of each feature."""
    moments: np.ndarray = field(2, "inputs", range=Range(-1e100, 1e100))
    """See `MEAN`; the first column is of the constant, and not used."""
    counts: np.ndarray = field("sides", "words", range=NOT_NEGATIVE)
    """How often each word, or feature, came in each class; first, how many examples there were."""
    known: np.ndarray = field("words", range=NOT_NEGATIVE)
    """The same of all classes together."""
    totals: np.ndarray = field("sides", range=NOT_NEGATIVE)
    """The sums over all words; of dense rows nothing is counted."""
    normals: np.ndarray = field("sides", 2, "measured", range=Range(-1e80, 1e80))
    """Of dense rows, the mean and the variance of each feature in each class; the first column is
    not used."""
    n_of_class: np.ndarray = field("sides", 2, range=NOT_NEGATIVE)
    """See `OF_NORMAL`."""
    errors: np.ndarray = field(N_INPUTS + 2, range=Range(0.0, 1.0))
    """The shares of errors of late: of each input alone, of all combined, and of all but the last
    label."""
    info: np.ndarray = field(N_INFO, dtype=np.int64, range=COUNT)
    digests: np.ndarray = field("waiting", dtype=np.int64, scratch=True)
    """Of predictions that wait for their labels 1 + the digest of the row; 0: none waits here."""
    stamps: np.ndarray = field("waiting", dtype=np.int64, scratch=True)
    """In which order they were predicted."""
    waiting: np.ndarray = field("waiting", N_INPUTS + 1, "outputs", scratch=True)
    """Their inputs, and all of these combined; for files see `waiting_arrays`."""


def _check(state: CombinationState, sizes: Sizes) -> None:
    if (state.moments[SQUARES] < 0.0).any() or (state.leads < 0.0).any():
        raise ValueError("moments or leads of a combination are below 0")
    if (state.normals[:, 1] < 0.0).any():
        raise ValueError("variances of a combination are below 0")
    least = -1e-6 * (1.0 + np.trace(state.curvature))
    if (np.linalg.eigvalsh(state.curvature) < least).any():
        raise ValueError("the curvature of a combination is not positive semi-definite")


declare(CombinationState, _check)


class Scratch(NamedTuple):
    """Arrays that calls overwrite."""

    inputs: np.ndarray  # (N_INPUTS, outputs)
    row: np.ndarray  # (features,): the values that the linear models see
    matrix: np.ndarray  # (N_INPUTS, N_INPUTS + 1)
    factors_of_classes: np.ndarray  # (classes,), (2,): what an example of each class weighs
    p: np.ndarray  # (outputs,): probabilities
    z: np.ndarray  # (outputs,): all inputs combined
    raw: np.ndarray  # (N_INPUTS, outputs): scores as they are, which were cut


def new_scratch(n_outputs: int, n_features: int) -> Scratch:
    """Return arrays for so many outputs and features."""
    square = np.zeros((N_INPUTS, N_INPUTS + 1))
    inputs = np.zeros((N_INPUTS, n_outputs))
    factors, p, z = np.ones(max(2, n_outputs)), np.zeros(n_outputs), np.zeros(n_outputs)
    return Scratch(inputs, np.zeros(n_features), square, factors, p, z, inputs.copy())


def new_combination() -> CombinationState:
    """Return the combination of two classes, or of one, for dense rows."""
    sizes = {"outputs": 1, "inputs": 1, "sides": 2, "words": 1, "measured": 1}
    sizes["waiting"] = FEWEST_WAITING
    state: CombinationState = states.new(CombinationState, sizes)
    state.weights[0] = FIRST_WEIGHT
    return state


def nothing_combined() -> tuple[CombinationState, Scratch, np.ndarray]:
    """Return arrays of size 0, where scores are not combined."""
    one, two, three = (np.zeros((0,) * n) for n in (1, 2, 3))
    none = np.zeros(0, np.int64)
    state = CombinationState(
        one, two, one, three, two, two, one, one, three, two, one, none, none, none, three
    )
    return state, Scratch(two, one, two, one, one, one, two), none


def n_waiting(n_outputs: int) -> int:
    """Return how many predictions may wait for their labels, a power of two."""
    most = max(WAYS, _MOST_KEPT // ((N_INPUTS + 1) * n_outputs))
    return min(MOST_WAITING, 1 << (most.bit_length() - 1))


def with_outputs(state: CombinationState, n_outputs: int) -> CombinationState:
    """Return a state for more outputs; the two classes so far keep what the linear models know."""
    before, n = state.linear.shape[1], state.linear.shape[2]
    linear = np.zeros((2, n_outputs, n))
    if before == 1 < n_outputs:
        linear[:, 0], linear[:, 1] = -0.5 * state.linear[:, 0], 0.5 * state.linear[:, 0]
    else:
        linear[:, :before] = state.linear
    more = max(2, n_outputs) - len(state.counts)
    places = min(len(state.digests), n_waiting(n_outputs))
    new = state._replace(
        linear=linear, leads=state.leads.copy(), info=state.info.copy(),
        moments=state.moments.copy(), weights=state.weights.copy(),
        curvature=state.curvature.copy(), counts=np.pad(state.counts, ((0, more), (0, 0))),
        known=state.known.copy(), totals=np.pad(state.totals, (0, more)),
        normals=np.pad(state.normals, ((0, more), (0, 0), (0, 0))),
        n_of_class=np.pad(state.n_of_class, ((0, more), (0, 0))),
        errors=state.errors.copy(),
        digests=np.zeros(places, np.int64), stamps=np.zeros(places, np.int64),
        waiting=np.zeros((places, N_INPUTS + 1, n_outputs)),
    )  # fmt: skip
    if before > 1 and len(new.digests) == len(state.digests):
        new.digests[:], new.stamps[:] = state.digests, state.stamps
        new.waiting[:, :, :before] = state.waiting
    else:
        new.info[N_KEPT] = 0
    if before == 1 < n_outputs:
        new.weights[:], new.curvature[:], new.errors[:] = 0.0, 0.0, 0.0
        new.weights[0] = FIRST_WEIGHT
    return new


def made_sparse(state: CombinationState) -> CombinationState:
    """Return a state for sparse rows: they are not standardised, and their words are counted."""
    d = state.moments.shape[1]
    counts = np.zeros((len(state.counts), d))
    linear = np.zeros_like(state.linear)
    totals = np.zeros(len(counts))
    return state._replace(
        linear=linear, counts=counts, known=np.zeros(d), totals=totals,
        normals=np.zeros((len(counts), 2, 1)), n_of_class=np.zeros((len(counts), 2)),
    )  # fmt: skip


def with_room(state: CombinationState, n_features: int, is_sparse: bool) -> CombinationState:
    """Return a state with room for more features, and words of sparse rows."""
    more = 1 + n_features - state.moments.shape[1]
    if more <= 0:
        return state
    # At least twice as many as before: many features may come one by one.
    more = max(more, state.moments.shape[1])
    linear, moments = np.pad(state.linear, ((0, 0), (0, 0), (0, more))), state.moments
    of_words, measured = (more, 0) if is_sparse else (0, more)
    return state._replace(
        linear=linear,
        moments=np.pad(moments, ((0, 0), (0, more))),
        counts=np.pad(state.counts, ((0, 0), (0, of_words))),
        known=np.pad(state.known, (0, of_words)),
        normals=np.pad(state.normals, ((0, 0), (0, 0), (0, measured))),
    )


def _with_places(state: CombinationState, n: int) -> CombinationState:
    """Return a state with n places for predictions that wait, which has those of another one."""
    none = np.zeros(n, np.int64)
    waiting = np.zeros((n, *state.waiting.shape[1:]))
    new = state._replace(digests=none, stamps=none.copy(), waiting=waiting)
    for i in _in_order(state).tolist():
        at = _place_for(new, state.digests[i] - 1)
        for own, other in zip(new[-3:], state[-3:], strict=True):
            own[at] = other[i]
    return new


def _in_order(state: CombinationState) -> np.ndarray:
    """Return the places of predictions that wait, the oldest first."""
    used = np.flatnonzero(state.digests)
    found: np.ndarray = used[np.argsort(state.stamps[used])]
    return found


def with_more_places(state: CombinationState) -> CombinationState:
    """Return a state with more places for predictions, if half of them are taken; else the same."""
    n, most = len(state.digests), n_waiting(state.linear.shape[1])
    if n >= most or 2 * np.count_nonzero(state.digests) <= n:
        return state
    return _with_places(state, min(most, 4 * n))


def waiting_arrays(state: CombinationState) -> dict[str, np.ndarray]:
    """Return the predictions that wait for their labels, as a file has them."""
    order = _in_order(state)
    return {
        "late_places": np.array([len(state.digests)]),
        "late_digests": state.digests[order],
        "late_stamps": state.stamps[order],
        "late_inputs": state.waiting[order],
    }


def read_waiting(state: CombinationState, arrays: NamedArrays) -> CombinationState:
    """Return a state with what `waiting_arrays` returned; raise ValueError if it does not fit."""
    most = n_waiting(state.linear.shape[1])
    places = int(arrays.take("late_places", Field((1,), np.int64, range=Range(WAYS, most)), {})[0])
    if places & (places - 1):
        raise ValueError("late_places is no power of two")
    state = _with_places(state, places)
    n = arrays.length_of("late_digests", 0)
    digests = arrays.take("late_digests", Field((n,), np.int64, range=Range(1)), {})
    stamps = arrays.take("late_stamps", Field((n,), np.int64, range=COUNT), {})
    inputs = arrays.take("late_inputs", Field((n, *state.waiting.shape[1:])), {})
    for i, digest_and_1 in enumerate(digests.tolist()):
        at = _place_for(state, digest_and_1 - 1)
        state.digests[at], state.stamps[at], state.waiting[at] = digest_and_1, stamps[i], inputs[i]
    return state


def losses_without(state: CombinationState) -> np.ndarray:
    """Return what would be lost in all without each input: log loss, float64 (N_INPUTS,)."""
    inverse = np.linalg.inv(state.curvature + PRIOR * np.eye(N_INPUTS))
    found: np.ndarray = state.weights**2 / (2.0 * np.diag(inverse))
    return found


def leave_out(state: CombinationState, m: int) -> None:
    """Set the weight of an input to 0, and the others to what is best without it."""
    inverse = np.linalg.inv(state.curvature + PRIOR * np.eye(N_INPUTS))
    state.weights[:] -= state.weights[m] / inverse[m, m] * inverse[m]
    state.weights[m] = 0.0
    state.curvature[m], state.curvature[:, m] = 0.0, 0.0


def standards(state: CombinationState, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of d features, and what differences from these are multiplied by."""
    mean, squares = state.moments[:, 1 : 1 + d]
    count = max(1, int(state.info[N]))
    varies = squares > _TINY * count
    return mean, np.where(varies, np.sqrt(count / np.where(varies, squares, 1.0)), 0.0)


def normals(state: CombinationState, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of naive Bayes means and variances, (sides, d), and logarithms of priors, (sides,).

    A feature that does not vary has the variance infinity.
    """
    count, mean_of_all = max(1, int(state.info[N])), state.moments[MEAN, 1 : 1 + d]
    squares, c = state.moments[SQUARES, 1 : 1 + d], state.n_of_class[:, OF_NORMAL, None]
    of_all = np.where(squares > _TINY * count, squares / count, np.inf)
    means = (c * state.normals[:, 0, 1 : 1 + d] + mean_of_all) / (c + 1.0)
    variances = (c * state.normals[:, 1, 1 : 1 + d] + 5.0 * of_all) / (c + 5.0) + 1e-3 * of_all
    shares = np.where(np.isinf(of_all), 1.0, variances / np.where(np.isinf(of_all), 1.0, of_all))
    return (
        means,
        variances,
        np.log(state.n_of_class[:, OF_LATE] + 1.0) - 0.5 * np.log(shares).sum(1),
    )


# Compiled code. A row is given by its first n values and, if it is sparse, their columns.


@compiled_inner
def _write_row(state, values, columns, n, is_sparse, row):
    """Write what the linear models see of a row."""
    count = np.float64(state.info[N])
    for t in range(n):
        row[t] = values[t]
        if not is_sparse:
            row[t] = 0.0
            squares = state.moments[SQUARES, 1 + t]
            if squares > _TINY * count:
                z = (values[t] - state.moments[MEAN, 1 + t]) / math.sqrt(squares / count)
                row[t] = min(FAR, max(-FAR, z))


@compiled_inner
def _write_linear(state, columns, n, is_sparse, scratch):
    """Write the scores of the linear models, as they are."""
    for m in range(2):
        for o in range(scratch.inputs.shape[1]):
            weights = state.linear[m, o]
            score = weights[0]
            for t in range(n):
                at = np.int64(columns[t]) if is_sparse else np.int64(t)
                score += weights[1 + at] * scratch.row[t]
            scratch.inputs[FAST + m, o] = score


@compiled_inner
def _best(scores, but):
    """Return the index of the largest score but one."""
    found = np.int64(-1)
    for o in range(scores.size):
        if o != but and (found < 0 or scores[o] > scores[found]):
            found = np.int64(o)
    return found


@compiled_inner
def _write_bayes(state, values, columns, n, scratch):
    """Write the log odds of multinomial naive Bayes; of several classes the log probabilities."""
    k, counts = scratch.inputs.shape[1], state.counts
    vocabulary = state.info[N_WORDS] + 1.0
    for side in range(counts.shape[0]):
        score = math.log(counts[side, 0] + 1.0)
        of_all = math.log(state.totals[side] + vocabulary)
        for t in range(n):
            column = 1 + np.int64(columns[t])
            if state.known[column] > 0.0:
                score += abs(values[t]) * (math.log(counts[side, column] + 1.0) - of_all)
        if k > 1:
            scratch.inputs[BAYES, side] = score / 3.0
        else:
            scratch.inputs[BAYES, 0] += (2.0 * side - 1.0) * score / 3.0


@compiled_inner
def _write_normal(state, values, n, scratch):
    """Write the log odds of Gaussian naive Bayes; of several classes the log probabilities."""
    k, count = scratch.inputs.shape[1], np.float64(state.info[N])
    for side in range(state.n_of_class.shape[0]):
        own, c = state.normals[side], state.n_of_class[side, OF_NORMAL]
        score, product = math.log(state.n_of_class[side, OF_LATE] + 1.0), np.float64(1.0)
        for t in range(n):
            squares = state.moments[SQUARES, 1 + t]
            if squares <= _TINY * count:
                continue
            of_all = squares / count
            mean = (c * own[0, 1 + t] + state.moments[MEAN, 1 + t]) / (c + 1.0)
            variance = (c * own[1, 1 + t] + 5.0 * of_all) / (c + 5.0) + 1e-3 * of_all
            change = values[t] - mean
            score -= 0.5 * min(FURTHEST, change * change / variance)
            product *= variance / of_all
            # A logarithm of a product takes less time than the sum of logarithms.
            if not 1e-100 < product < 1e100:
                score -= 0.5 * math.log(max(1e-300, min(1e300, product)))
                product = np.float64(1.0)
        score -= 0.5 * math.log(product)
        if k > 1:
            scratch.inputs[BAYES, side] = score / 3.0
        else:
            scratch.inputs[BAYES, 0] += (2.0 * side - 1.0) * score / 3.0


@compiled_inner
def _cut(state, scratch):
    """Bring the inputs of scores to one scale, and cut them."""
    inputs = scratch.inputs
    for m in range(LAST):
        for o in range(inputs.shape[1]):
            scratch.raw[m, o] = inputs[m, o]
        if inputs.shape[1] == 1:
            inputs[m, 0] = min(LONGEST, max(-LONGEST, inputs[m, 0]))
            continue
        first = _best(inputs[m], -1)
        one, two = inputs[m, first], inputs[m, _best(inputs[m], first)]
        scale, centre = 2.0 / max(state.leads[m], 1e-6), 0.5 * (one + two)
        # A model that is not asked has the score 0 for each class.
        scale = scale if one > two else 0.0
        for o in range(inputs.shape[1]):
            value = (inputs[m, o] - centre) * scale
            inputs[m, o] = 0.5 * min(LONGEST, max(-LONGEST, value))


@compiled_inner
def _write_inputs(state, scores, values, columns, n, is_sparse, knows_last, scratch):
    inputs, k = scratch.inputs, scratch.inputs.shape[1]
    for o in range(k):
        for m in range(N_MODELS):
            inputs[m, o] = scores[m, o]
        inputs[BAYES, o], inputs[LAST, o] = 0.0, 0.0
        inputs[CONSTANT, o] = 1.0 if k == 1 else 0.0
    _write_row(state, values, columns, n, is_sparse, scratch.row)
    _write_linear(state, columns, n, is_sparse, scratch)
    if is_sparse:
        _write_bayes(state, values, columns, n, scratch)
    else:
        _write_normal(state, values, n, scratch)
    _cut(state, scratch)
    last = state.info[LAST_LABEL] - 1
    if knows_last and last >= 0:
        if k == 1:
            inputs[LAST, 0] = 2.0 if last == 1 else -2.0
        elif last < k:
            inputs[LAST, last] = 2.0


@compiled
def uses_last(state):
    """Tell whether the last label counts."""
    return state.errors[COMBINED] < state.errors[WITHOUT_LAST] - LEAD_OF_LAST


@compiled
def alone(state):
    """Return the input that predicts alone, -1: all are combined."""
    best = np.int64(-1)
    # One without a weight says nothing at present.
    least = state.errors[COMBINED if uses_last(state) else WITHOUT_LAST]
    least -= LEAD_IF_LATE if state.info[IS_LATE] else LEAD
    for m in range(LAST):
        if state.weights[m] != 0.0 and state.errors[m] < least:
            best, least = np.int64(m), state.errors[m]
    return best


@compiled_inner
def _write_combined(state, scratch, z):
    for o in range(z.size):
        z[o] = 0.0
        for m in range(N_INPUTS):
            z[o] += state.weights[m] * scratch.inputs[m, o]


@compiled_inner
def _write_predicted(state, scratch, out):
    """Write the scores that predict: all inputs combined, or one of them alone."""
    best, takes_last = alone(state), uses_last(state)
    for o in range(out.size):
        out[o] = scratch.z[o] if takes_last else 0.0
        if best >= 0:
            out[o] = FIRST_WEIGHT * scratch.inputs[best, o]
        elif not takes_last:
            # To the last bit what it is of rows that do not follow the last example.
            for m in range(N_INPUTS):
                if m != LAST:
                    out[o] += state.weights[m] * scratch.inputs[m, o]


@compiled_inner
def combine(state, scores, values, columns, n, is_sparse, knows_last, scratch, out):
    """Write the combined scores of a row: float64 (outputs,).

    `scores`, float64 (N_MODELS, outputs), are those of the kernel models; `values` are float32 (>=
    n,), `columns` int32 (>= n,), not read if the row is not sparse.
    """
    _write_inputs(state, scores, values, columns, n, is_sparse, knows_last, scratch)
    _write_combined(state, scratch, scratch.z)
    _write_predicted(state, scratch, out)


@compiled
def _place_for(state, row):
    """Return where inputs of a row are kept, given its digest: at a free place, or the oldest."""
    first = row & (state.digests.size - 1) & ~(WAYS - 1)
    found = first
    for at in range(first, first + WAYS):
        if state.digests[at] == 0:
            return at
        if state.stamps[at] < state.stamps[found]:
            found = at
    return found


@compiled_inner
def _place_of(state, row, is_newest):
    """Return where the newest, or oldest, inputs of a row are kept; -1: they are not."""
    first = row & (state.digests.size - 1) & ~(WAYS - 1)
    found = np.int64(-1)
    for at in range(first, first + WAYS):
        if state.digests[at] == row + 1:
            if found < 0 or (state.stamps[at] > state.stamps[found]) == is_newest:
                found = np.int64(at)
    return found


@compiled_inner
def keep_inputs(state, row, scratch):
    """Keep the inputs of a prediction, of a row given by its digest, until its label comes."""
    if state.digests.size > 0:
        at = _place_for(state, row)
        state.info[N_KEPT] += 1
        state.digests[at], state.stamps[at] = row + 1, state.info[N_KEPT]
        for o in range(scratch.inputs.shape[1]):
            state.waiting[at, COMBINED, o] = scratch.z[o]
            for m in range(N_INPUTS):
                state.waiting[at, m, o] = scratch.inputs[m, o]


@compiled
def forget_inputs(state, row):
    """Forget the last inputs of a row: nothing was learnt since, and they are as they were."""
    at = _place_of(state, row, True)
    if at >= 0:
        state.info[N_KEPT] -= np.int64(state.stamps[at] == state.info[N_KEPT])
        state.digests[at] = state.stamps[at] = 0


@compiled_inner
def _take_inputs(state, row, scratch):
    """Replace inputs, and what they combined to, by those of the prediction, if they are kept."""
    at = _place_of(state, row, False)
    if at >= 0:
        state.digests[at] = state.stamps[at] = 0
        for o in range(scratch.inputs.shape[1]):
            scratch.z[o] = state.waiting[at, COMBINED, o]
            for m in range(N_INPUTS):
                scratch.inputs[m, o] = state.waiting[at, m, o]


@compiled_inner
def marks_of(scores, combined, label, weight):
    """Return which scores, float64 (N_MODELS, outputs), predict another label, as bits.

    Bit N_MODELS is that of the combined ones, float64 (outputs,). At a weight of 0 `UNCOUNTED`.
    """
    if weight == 0.0:
        return np.int64(UNCOUNTED)
    marks = np.int64(label_index(combined) != label) << N_MODELS
    for m in range(N_MODELS):
        marks |= np.int64(label_index(scores[m]) != label) << m
    return marks


@compiled_inner
def _learn_weights(state, scratch, label, weight, out):
    """Make the step of the weights, by the inputs and `out`, what was combined of them."""
    inputs, p, k = scratch.inputs, scratch.p, out.size
    matrix, floor = scratch.matrix, FLATTEST
    if k == 1:
        p[0] = 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, out[0]))))
    else:
        total, most = np.float64(0.0), out[_best(out, -1)]
        for o in range(k):
            p[o] = math.exp(max(-30.0, out[o] - most))
            total += p[o]
        for o in range(k):
            p[o] = (1.0 - 2.0 * floor) * p[o] / total + 2.0 * floor / k
    for a in range(N_INPUTS):
        own = 0.0
        for o in range(k):
            own += p[o] * inputs[a, o]
        if k == 1:
            matrix[a, N_INPUTS] = weight * (p[0] - np.float64(label)) * inputs[a, 0]
        else:
            matrix[a, N_INPUTS] = weight * (own - inputs[a, label])
        for b in range(a + 1):
            other, both = 0.0, 0.0
            for o in range(k):
                other += p[o] * inputs[b, o]
                both += p[o] * inputs[a, o] * inputs[b, o]
            if k == 1:
                both = max(p[0] * (1.0 - p[0]), floor) * inputs[a, 0] * inputs[b, 0]
            else:
                both -= own * other
            state.curvature[a, b] = FORGET * state.curvature[a, b] + weight * both
            state.curvature[b, a] = state.curvature[a, b]
    for a in range(N_INPUTS):
        for b in range(N_INPUTS):
            matrix[a, b] = state.curvature[a, b] + (PRIOR if a == b else 0.0)
    _solve(matrix)
    for a in range(N_INPUTS):
        state.weights[a] -= matrix[a, N_INPUTS]


@compiled_inner
def _solve(matrix):
    """Solve in place: the last column becomes the solution; the rest is positive definite."""
    for a in range(N_INPUTS):
        for b in range(a + 1, N_INPUTS):
            share = matrix[b, a] / matrix[a, a]
            for c in range(a, N_INPUTS + 1):
                matrix[b, c] -= share * matrix[a, c]
    for a in range(N_INPUTS - 1, -1, -1):
        value = matrix[a, N_INPUTS]
        for b in range(a + 1, N_INPUTS):
            value -= matrix[a, b] * matrix[b, N_INPUTS]
        matrix[a, N_INPUTS] = value / matrix[a, a]


@compiled_inner
def _learn_linear(state, columns, n, is_sparse, label, weight, scratch):
    """Make the steps of the linear models."""
    square, k = 1.0, scratch.inputs.shape[1]
    for t in range(n):
        square += scratch.row[t] * scratch.row[t]
    for m in range(2):
        scores, most = scratch.raw[FAST + m], weight * (FAST_C if m == 0 else SLOW_C)
        if k == 1:
            side = 1.0 if label == 1 else -1.0
            step = min(most, max(0.0, 1.0 - side * scores[0]) / square)
            _add(state.linear[m, 0], side * step, columns, n, is_sparse, scratch.row)
        else:
            rival = _best(scores, label)
            loss = max(0.0, 1.0 - scores[label] + scores[rival])
            step = min(most, loss / (2.0 * square))
            _add(state.linear[m, label], step, columns, n, is_sparse, scratch.row)
            _add(state.linear[m, rival], -step, columns, n, is_sparse, scratch.row)


@compiled_inner
def _add(weights, step, columns, n, is_sparse, row):
    if step == 0.0:
        return
    weights[0] += step
    for t in range(n):
        at = np.int64(columns[t]) if is_sparse else np.int64(t)
        weights[1 + at] += step * row[t]


@compiled_inner
def learn(
    state, scores, values, columns, n, is_sparse, knows_last, row, label, weight, scratch, out
):  # fmt: skip
    """Write the combined scores of a row, as `combine` does, and learn its label, an index.

    `row` is its digest. `out` are the scores that were predicted, if the row was predicted before.
    At a weight of 0 only the label is recorded.
    """
    weight = weight * scratch.factors_of_classes[label]
    combine(state, scores, values, columns, n, is_sparse, knows_last, scratch, out)
    _take_inputs(state, row, scratch)
    _write_predicted(state, scratch, out)
    state.info[LAST_LABEL] = label + 1
    _note_width(state, values, columns, n, is_sparse)
    if weight == 0.0:
        return
    for o in range(out.size):
        scratch.p[o] = scratch.z[o] - state.weights[LAST] * scratch.inputs[LAST, o]
    for m in range(N_INPUTS + 2):
        if m < N_INPUTS:
            is_wrong = label_index(scratch.inputs[m]) != label
        else:
            is_wrong = label_index(scratch.z if m == COMBINED else scratch.p) != label
        share = weight / (weight + (ERRORS_OF_LATE if state.info[IS_LATE] else LEADS_OF))
        state.errors[m] += share * (np.float64(is_wrong) - state.errors[m])
    # By the weights that there are now.
    _write_combined(state, scratch, scratch.z)
    _learn_weights(state, scratch, label, weight, scratch.z)
    count = state.info[N] + 1
    if out.size > 1:
        for m in range(LAST):
            raw = scratch.raw[m]
            first = _best(raw, -1)
            lead = raw[first] - raw[_best(raw, first)]
            if lead > 0.0:
                lead, n_before = min(lead, LARGEST_LEAD), min(count + 1, LEADS_OF)
                state.leads[m] += (lead - state.leads[m]) / (n_before if state.leads[m] else 1)
    _learn_linear(state, columns, n, is_sparse, label, weight, scratch)
    state.info[N] = count
    if is_sparse:
        _count_words(state, values, columns, n, label, weight)
    else:
        _learn_moments(state, values, n, count, label, weight)


@compiled_inner
def _note_width(state, values, columns, n, is_sparse):
    for t in range(n - 1, -1, -1):
        column = np.int64(columns[t]) if is_sparse else np.int64(t)
        if column < state.info[WIDTH] and not is_sparse:
            break
        if values[t] != 0.0:
            state.info[WIDTH] = max(state.info[WIDTH], column + 1)


def count_words(
    state: CombinationState, x: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> None:
    """Count the words of rows, float32 (n, d), that came while rows were dense, in a new state.

    `weights`, float64 (n,), have the class weights in them.
    """
    counts, d = np.abs(x) * weights[:, None], x.shape[1]
    np.add.at(state.counts[:, 0], labels, weights)
    np.add.at(state.counts[:, 1 : 1 + d], labels, counts)
    state.totals[:] = state.counts[:, 1:].sum(axis=1)
    state.known[:] = state.counts.sum(axis=0)
    state.known[0], state.info[N_WORDS] = 0.0, np.count_nonzero(state.known[1:])


@compiled_inner
def _count_words(state, values, columns, n, label, weight):
    state.counts[label, 0] += weight
    for t in range(n):
        column, more = 1 + np.int64(columns[t]), weight * abs(np.float64(values[t]))
        state.info[N_WORDS] += np.int64(state.known[column] == 0.0 and more > 0.0)
        state.known[column] += more
        state.counts[label, column] += more
        state.totals[label] += more


@compiled_inner
def _learn_moments(state, values, n, count, label, weight):
    """Learn the values of a row; `count` includes it."""
    counts, own = state.n_of_class, state.normals[label]
    for side in range(counts.shape[0]):
        counts[side, OF_LATE] *= 1.0 - 1.0 / NORMALS_OF
    counts[label, OF_LATE] += weight
    # Moments are of examples, whatever these weigh.
    counts[label, OF_NORMAL] = min(counts[label, OF_NORMAL] + 1.0, np.float64(NORMALS_OF))
    share = 1.0 / counts[label, OF_NORMAL]
    for t in range(n):
        value, mean = np.float64(values[t]), state.moments[MEAN, 1 + t]
        squares = state.moments[SQUARES, 1 + t]
        # One value that is far away does not make all others look alike.
        if count > FEWEST and squares > _TINY * count:
            spread = FAR * math.sqrt(squares / (count - 1))
            value = min(mean + spread, max(mean - spread, value))
        change = value - mean
        state.moments[MEAN, 1 + t] += change / count
        state.moments[SQUARES, 1 + t] += change * (value - state.moments[MEAN, 1 + t])
        change = value - own[0, 1 + t]
        own[0, 1 + t] += share * change
        own[1, 1 + t] = (1.0 - share) * (own[1, 1 + t] + share * change * change)


@compiled
def learn_rows(state, scores, x, start, columns, labels, weights, knows_last, scratch, out, marks):
    """Write combined scores of rows, and learn those with a label.

    `scores` are float64 (n, N_MODELS, outputs); `out`, written, is float64 (n, outputs); `marks`,
    written of rows with a label, are int64 (n,): see `marks_of`. `labels`,
    int64 (n,) are indices, or `ONLY`, `LATER` or `NEXT`; `weights`, float64 (n,), are those of the
    examples. Rows are x, float32 (n, d), with `start` of size 0; or the values x[0] of sparse rows,
    of which row r has `start[r]` to `start[r + 1]`, int64, in `columns`, int32.
    """
    is_sparse = start.size > 0
    for r in range(labels.size):
        first, stop = (start[r], start[r + 1]) if is_sparse else (np.int64(0), np.int64(x.shape[1]))
        values = x[0, first:stop] if is_sparse else x[r]
        own, n = columns[first:stop] if is_sparse else columns, stop - first
        if labels[r] >= 0:
            row = digest(own, values, n, is_sparse, state.info[WIDTH])
            learn(
                state, scores[r], values, own, n, is_sparse, knows_last, row, labels[r],
                weights[r], scratch, out[r],
            )  # fmt: skip
            marks[r] = marks_of(scores[r], out[r], labels[r], weights[r])
            continue
        is_next = knows_last and labels[r] == NEXT
        combine(state, scores[r], values, own, n, is_sparse, is_next, scratch, out[r])
        if labels[r] == LATER:
            row = digest(own, values, n, is_sparse, state.info[WIDTH])
            keep_inputs(state, row, scratch)
