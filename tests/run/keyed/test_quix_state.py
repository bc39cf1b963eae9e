"""A model per key on the state that Quix Streams keeps on disk, without a broker."""

from datetime import timedelta

import pytest

pytest.importorskip("quixstreams", reason="pip install quixstreams")

from quixstreams.context import set_message_context
from quixstreams.models import MessageContext
from quixstreams.state.rocksdb import RocksDBStorePartition

from streamsvm import SVMSGDClassifier
from streamsvm.errors import KeyedStateError, ParameterError
from streamsvm.run.keyed import ModelPerKey


class Disk:
    """The state of a partition on disk; calls models as an application does."""

    def __init__(self, folder):
        self.store = RocksDBStorePartition(str(folder / "db"))
        self.open = self.store.begin()

    def commit(self):
        self.open.prepare()
        self.open.flush()
        self.open = self.store.begin()

    def state(self, key="k", at=0):
        return self.open.as_state(prefix=key, timestamp=at)

    def deliver(self, offset, values, *models, key="k"):
        """Give the events of a message to models; return what they make of them."""
        context = MessageContext(topic="t", partition=0, offset=offset, size=0, leader_epoch=0)
        set_message_context(context)
        return [one(v, key, 0, None, self.state(str(key))) for v in values for one in models]


def test_events_of_one_message_and_of_one_that_comes_again(tmp_path):
    disk, answers = Disk(tmp_path), []
    values = [{"a": float(i), "y": bool(i % 2)} for i in range(20)]
    for already in (0, 20):
        # Another worker, to which all messages come again.
        models = ModelPerKey(SVMSGDClassifier(seed=0), target="y")
        found = [
            one for i in range(5) for one in disk.deliver(i, values[4 * i : 4 * i + 4], models)
        ]
        assert sum(one["learnt"] for one in found) == 20 - already
        assert sum(one.get("repeated", False) for one in found) == already
        answers.append([one["prediction"] for one in found])
        disk.commit()
    whole, expected = SVMSGDClassifier(seed=0), []
    for value in values:
        expected.append(whole.predict_one({"a": value["a"]}))
        whole.learn_one({"a": value["a"]}, value["y"])
    assert answers == [expected, expected]
    # The half of a message was learnt, and a longer one comes: its events are told by their number.
    assert [one["learnt"] for one in disk.deliver(4, values[:6], models)] == [False] * 4 + [
        True
    ] * 2


def test_a_target_that_no_message_has_is_warned_of_once(tmp_path, caplog):
    disk = Disk(tmp_path)
    models = ModelPerKey(SVMSGDClassifier(), target="frad")
    late = ModelPerKey(SVMSGDClassifier(), target="late")
    for i in range(250):
        value = {"a": float(i), "fraud": bool(i % 2)} | ({"late": None} if i == 99 else {})
        disk.deliver(i, [value], models, late)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.getMessage() == (
        "none of the first 100 events has the target `frad`, so that nothing was learnt; the "
        "last one has `a`, `fraud`, `late`: is target= the name of the label?"
    )


def test_two_models_on_a_stream(tmp_path):
    disk = Disk(tmp_path)
    both = [ModelPerKey(SVMSGDClassifier(), target=name) for name in ("fraud", "churn")]
    for i in range(6):
        value = {"a": float(i), "fraud": bool(i % 2), "churn": not i % 2}
        assert all(one["learnt"] for one in disk.deliver(i, [value], *both))
    same = ModelPerKey(SVMSGDClassifier(), target="fraud", exclude=["churn"])
    with pytest.raises(KeyedStateError, match=r"'fraud' were made with .*'exclude': \[\]"):
        disk.deliver(9, [value], same)


def test_fields_and_keys_of_messages(tmp_path):
    disk, models = Disk(tmp_path), ModelPerKey(SVMSGDClassifier(), target="y", features=["a"])
    of_theirs = {"error": "mine", "repeated": True, "probabilities": 1, "prediction": "x"}
    (found,) = disk.deliver(0, [{"a": 1.0, "y": True, **of_theirs}], models)
    assert found == {"a": 1.0, "y": True, "prediction": None, "learnt": True}
    (found,) = disk.deliver(1, [{"a": [1], "y": True, **of_theirs}], models)
    assert found.keys() == {"a", "y", "prediction", "learnt", "error"} and "list" in found["error"]
    for key in ([1], 1, None):
        (found,) = disk.deliver(2, [{"a": 1.0, "y": True}], models, key=key)
        assert not found["learnt"] and "key" in found["error"]
    assert models.bad.counts == {"bad event": 4}
    with pytest.raises(ParameterError, match=r"use .apply\(models, stateful=True, metadata=True\)"):
        models({"a": 1.0, "y": True}, disk.state())


def test_ttl_in_another_step_stops_the_application(tmp_path):
    disk, models = Disk(tmp_path), ModelPerKey(SVMSGDClassifier(), target="y")
    value = {"a": 1.0, "y": True}
    disk.deliver(0, [value], models)
    disk.commit()
    for _ in range(2):
        disk.state("other", 10**12).set("seen", 1, ttl=timedelta(hours=1))
        disk.commit()
    with pytest.raises(KeyedStateError, match="ttl= for the state of any step"):
        disk.deliver(1, [value], models)
