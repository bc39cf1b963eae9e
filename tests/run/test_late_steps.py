"""Many events predicted and learnt at once, compared with one after the other."""

import heapq

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors import MemorySource
from connectors.batch import Batch
from streamsvm import (
    LaRankClassifier,
    LASVMClassifier,
    SGDQNClassifier,
    StandardScaler,
    SVMSGDClassifier,
    TrackingMonitor,
    TrackingSVMClassifier,
    kernels,
)
from streamsvm.features.matrices import Matrix, SparseMatrix
from streamsvm.labels.label_column import LabelColumn, Pairs
from streamsvm.learners.bases.late_rows import LateRows, as_learnt
from streamsvm.learners.bases.learner import Learner
from streamsvm.models.rows import row_after
from streamsvm.monitor.watched import learner_of
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.feeder import Feeder
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.runner import carry_out
from streamsvm.support.rows import dense, sparse

# Not None, and a fixed schedule for LaRank: gamma, and the costs that LaRank weighs, depend on the
# number of features, which are those of the whole batch.
RBF = kernels.RBF(gamma=0.4)

MODELS = {
    "lasvm": lambda: LASVMClassifier(RBF, max_classes=2, max_support_vectors=12),
    "scaled": lambda: StandardScaler(reject=20.0) | LASVMClassifier(RBF, max_classes=2),
    "balanced": lambda: LASVMClassifier(RBF, max_classes=2, class_weight="balanced", window=25),
    "linear kernel": lambda: StandardScaler() | LASVMClassifier(kernels.Linear(), max_classes=2),
    "sparse": lambda: LASVMClassifier(RBF, max_classes=2, sparse=True),
    "larank": lambda: StandardScaler() | LaRankClassifier(RBF, reprocess=1, seed=1),
    "tracking": lambda: StandardScaler() | TrackingSVMClassifier(RBF, seed=1, window=20),
    "tracking, linear": lambda: TrackingSVMClassifier(kernels.Linear(), seed=1),
    "sgd": lambda: StandardScaler() | SVMSGDClassifier(),
    "sgd, hashed": lambda: SVMSGDClassifier(hashing=16),
    "sgdqn": lambda: StandardScaler() | SGDQNClassifier(class_weight={0: 2.0}),
}


def stream(n, seed, classes=2, faults=True):
    """Return events: some lack a feature, some bring a new one, and some are bad."""
    rng = np.random.default_rng(seed)
    events = []
    for i in range(n):
        a, b, c = rng.standard_normal(3).tolist()
        y = int((a * b > 0) if classes == 2 else np.digitize(a + b, [-1.0, 1.0]))
        x = {"a": a, "b": b} | ({"c": c} if i > n // 2 else {}) | ({"d": c} if i % 7 == 3 else {})
        if i % 5 == 4:
            del x["b"]
        if faults and i % 23 == 11:
            x["a"] = float("inf" if i % 2 else "nan")
        elif faults and i % 23 == 17:
            x["a"] = 1e9
        events.append((x, None if faults and i % 29 == 13 else y))
    if faults and n > 45:
        events[40] = (events[40][0], 7)
    return events


def one_by_one(model, events, delays, monitor=None):
    """Predict each event, and learn it when its label comes; one call of the model for each."""
    bad = BadEvents("skip")
    feeder = Feeder(model, bad)
    pairs, waiting = [], []
    for now, (x, y) in enumerate(events):
        while waiting and waiting[0][0] <= now:
            pairs += feeder.learn(*heapq.heappop(waiting)[2])
        batch = next(MemorySource([(x, y)]).batches())
        kept, predicted, _ = feeder.predict(batch)
        if not len(kept):
            continue
        if y is None:
            bad.counts["missing label"] += 1
            continue
        heapq.heappush(waiting, (now + delays[now], now, (batch, [y], predicted[:1])))
    while waiting:
        pairs += feeder.learn(*heapq.heappop(waiting)[2])
    return pairs, bad.counts


def in_batches(model, events, delays, size):
    """Do the same by `LateLabels`, with batches of some size."""
    bad = BadEvents("skip")
    feeder = Feeder(model, bad)
    of_event = iter(delays)
    late = LateLabels(delay=lambda event: next(of_event))
    pairs = Pairs()
    for start in range(0, len(events), size):
        # A source gives its columns to all rows of a batch; a missing feature is null.
        for batch in MemorySource(events[start : start + size]).batches():
            labels = feeder.labels_of(batch)
            pairs += carry_out(late.take(batch, labels), feeder)
    assert late.counts["held"] == len(late._held)
    pairs += carry_out(late.end(), feeder)
    assert late.counts["held"] == len(late._rows) == 0
    # A row that is refused when it is predicted has no label to wait for.
    n_refused = late.counts["answered"] - len(pairs) - bad.counts["third class"]
    assert 0 <= n_refused <= bad.counts["kernel value"]
    return list(pairs), bad.counts


def check_same(model, twin, events):
    a, b = learner_of(model), learner_of(twin)
    assert a.n_examples == b.n_examples
    assert a.classes == b.classes
    own, other = ((set if a.is_sparse else list)(m.feature_names) for m in (a, b))
    assert own == other
    for x, _ in events[:40]:
        if all(abs(value) < 1e6 for value in x.values()):
            one, other = model.predict_proba_one(x), twin.predict_proba_one(x)
            assert one == pytest.approx(other, abs=1e-6), x


def check_alike(make, events, delays, size):
    """Check that a model is the same by batches; return the counts of bad events."""
    model, twin = make(), make()
    delays = delays if isinstance(delays, list) else [delays] * len(events)
    own = in_batches(model, events, delays, size)
    assert own == one_by_one(twin, events, delays)
    check_same(model, twin, events)
    return own[1]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("delay", [1, 3, 40])
def test_the_result_is_that_of_one_event_after_the_other(name, delay):
    check_alike(MODELS[name], stream(160, 1, 3 if name in ("larank", "sgd") else 2), delay, 64)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["scaled", "larank", "sgd", "balanced"]),
    st.integers(0, 1000),
    st.integers(1, 70),
    st.lists(st.integers(0, 90), min_size=1, max_size=20),
)
@example("scaled", 0, 2, [25, 24, 23, 23, 0])  # an event that comes later teaches a feature first
def test_any_delays_and_batches_give_the_same_result(name, seed, size, some):
    events = stream(70, seed, 3 if name in ("larank", "sgd") else 2)
    check_alike(MODELS[name], events, (some * 70)[:70], size)


@pytest.mark.parametrize("learner", [LASVMClassifier, LaRankClassifier, TrackingSVMClassifier])
def test_gamma_and_schedules_that_follow_the_data(learner):
    events = [({"a": x["a"], "b": i % 3}, y) for i, (x, y) in enumerate(stream(300, 2, 2, False))]
    model, twin = (StandardScaler() | learner(seed=1) for _ in range(2))
    monitors = [TrackingMonitor(m, every=50) for m in (model, twin)]
    own = in_batches(model, events, [5] * 300, 128)
    assert own == one_by_one(twin, events, [5] * 300)
    check_same(model, twin, events)
    assert learner_of(model).kernel_ == learner_of(twin).kernel_
    own, other = (m.measure() for m in monitors)
    for name in ("n_examples", "n_support_vectors", "accuracy", "dual"):
        assert own[name] == pytest.approx(other[name]), name


@pytest.mark.parametrize("name", ["scaled", "sgd", "larank"])
def test_a_batch_is_one_call(name, monkeypatch):
    calls = []
    learn = Learner.learn_batch

    def counted(self, X, *args, **options):
        calls.append(len(X.values))
        return learn(self, X, *args, **options)

    monkeypatch.setattr(Learner, "learn_batch", counted)
    in_batches(MODELS[name](), stream(200, 3), [1] * 200, 100)
    # One for each batch, and one for the event that waits at the end.
    assert len(calls) == 3


def test_events_that_no_batch_can_hold_together_are_taken_one_by_one():
    events = stream(60, 4, faults=False)
    wide = [({f"f{i}-{j}": 1.0 for j in range(3)} | x, y) for i, (x, y) in enumerate(events)]
    check_alike(lambda: LASVMClassifier(RBF, max_features=20), wide, 2, 30)


def test_a_kernel_value_that_is_not_finite_is_a_dead_letter():
    events = [({"a": float(i % 5)}, i % 2) for i in range(30)]
    events[10] = ({"a": 1e30}, 1)
    bad = check_alike(lambda: LASVMClassifier(kernels.Polynomial(degree=5)), events, 3, 30)
    assert bad == {"kernel value": 1}


def learnt(learner, batches):
    """Return how many rows of some batches of two are learnt, each a row late."""
    feeder, late, n = Feeder(learner, BadEvents("skip")), LateLabels(delay=1), 0
    for columns in batches:
        batch = Batch(pa.record_batch(columns), pa.array([True, False]), np.arange(2), None)
        n += len(carry_out(late.take(batch, feeder.labels_of(batch)), feeder))
    return n + len(carry_out(late.end(), feeder))


def test_columns_of_one_name_may_change_their_type():
    learner = SVMSGDClassifier()
    batches = [{"a": pa.array([1, 2], kind)} for kind in (pa.float64(), pa.int32())]
    assert learnt(learner, batches) == learner.n_examples == 4


def test_rows_of_lists():
    learner, values = SVMSGDClassifier(sparse=True), pa.array([[1.0, 2.0], [3.0]])
    names = [pa.array([[0, 3 + shift], [1]], pa.list_(pa.int32())) for shift in (0, 2)]
    batches = [{"i": own, "v": values.cast(pa.list_(pa.float32()))} for own in names]
    assert learnt(learner, batches) == learner.n_examples == 4
    assert set(learner.feature_names) == {0, 1, 3, 5}


def test_features_are_hidden_until_a_row_teaches_them():
    values = np.arange(1.0, 13.0).reshape(4, 3)
    values[:3, 2] = np.nan
    is_learnt = np.array([False, True, False, False])
    matrix = as_learnt(Matrix(["a", "b", "c"], values, ["a", "b", "c"]), is_learnt, {"a": 0})
    assert matrix.names == matrix.order == ["a", "b"]
    hidden = np.array([[1.0, np.nan], [4.0, 5.0], [7.0, 8.0], [10.0, 11.0]])
    assert np.array_equal(matrix.values, hidden, equal_nan=True)
    assert values[0, 1] == 2.0
    x = sparse(np.array([[1, 2, 0], [4, 5, 0], [7, 8, 0], [10, 11, 12]], np.float32))
    listed = as_learnt(SparseMatrix(["a", "b", "c"], x), is_learnt, {"a": 0})
    assert listed.names == ["a", "b"]
    assert np.array_equal(dense(listed.rows), np.nan_to_num(hidden))


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 9), st.data())
def test_the_row_after_some_examples(is_example, n, data):
    start = data.draw(st.integers(0, len(is_example) - 1))
    numbers = np.where(is_example, np.arange(1, len(is_example) + 1), 0)
    row = row_after(numbers, start, n)
    count = sum(is_example[start:row])
    assert count == n and is_example[row - 1] if row < len(is_example) else count <= n


def test_a_row_that_is_only_predicted_has_any_known_label():
    late = LateRows(np.array([False, True, False, False]), np.arange(4), np.full(4, None))
    filled = late.filled(LabelColumn.of([None, "b", "c", None]), ["a"])
    assert filled.tolist() == ["a", "b", "b", "b"]
