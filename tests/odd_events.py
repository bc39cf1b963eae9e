"""Names and values of events as people have them, and learners that take the general path only."""

from decimal import Decimal

import numpy as np
from hypothesis import strategies as st

from streamsvm import StandardScaler
from streamsvm.learners.bases.event_path import EventPath


class _NoPath(EventPath):
    """Lets all events fall back."""

    def _write_plain(self, *given):
        return -1

    def predict(self, *given):
        return -1

    def learn(self, *given):
        return -1


class GeneralPath:
    """A base class of learners that learn and predict every event by the general path."""

    new_event_path = _NoPath


class GeneralScaler(StandardScaler):
    """Learns and scales every event by the general path."""

    def _plain(self, x):
        return (), None, None


PLAIN_NAMES = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "zz"]),
    st.text(max_size=3),
    st.integers(-3, 6),
    st.integers(-(2**63), 2**63 - 1),
    st.just(-(2**63)),
)


NUMBERS = st.one_of(
    st.floats(-3.0, 3.0),
    st.integers(-3, 3),
    st.booleans(),
    st.floats(-3.0, 3.0, width=32).map(np.float32),
    st.floats(-3.0, 3.0).map(np.float64),
)


ODD = st.one_of(
    st.sampled_from([None, "1.5", "", b"1", float("nan"), float("inf"), 1e39, 10**400, 1j, [1.0]]),
    st.sampled_from([Decimal("1.5"), np.int64(2), np.float16(0.5), np.float64("nan")]),
)


ODD_NAMES = st.one_of(
    st.tuples(st.sampled_from(["a", "b", 1]), st.integers(0, 3)),
    st.integers(-(2**70), 2**70),
    st.tuples(st.just("a"), st.booleans()),
    st.booleans(),
    st.none(),
    st.just("\ud800"),
)
