"""Members of a group that die at the worst moments: each message is learnt by one of them, once."""

import contextlib
import json
import random

import pytest

from connectors import KafkaSource
from connectors.kafka.reachable import Heard
from streamsvm import LASVMClassifier
from streamsvm.errors import CheckpointError
from streamsvm.model_files import container as model_file
from streamsvm.run import checkpoint as checkpoints
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.runner import Run
from tests.consumers import Confluent

N = 400  # messages in each partition
MOMENTS = ("before the checkpoint", "before the commit", "after the commit")


class KilledError(BaseException):
    """What a hook raises, in the place of kill -9: nothing is tidied up."""


class Member(Confluent):
    """A consumer; what it commits is kept in `commits`, which members share."""

    def __init__(self, commits, partitions):
        log = [json.dumps({"a": i % 7, "y": i % 7 > 3}).encode() for i in range(N)]
        super().__init__(dict.fromkeys(partitions, log))
        self.commits = commits


def learn(consumer, path, peers, monkeypatch, kill_at=None, after=1):
    """Learn with one member, killed at its checkpoint number `after`."""
    left = [after]

    def hooked(original, is_before):
        def call(*arguments):
            if not is_before:
                original(*arguments)
            left[0] -= 1
            if left[0] == 0:
                raise KilledError
            return original(*arguments) if is_before else None

        return call

    with monkeypatch.context() as patch:
        source = KafkaSource(consumer, "y", topics=["t"], batch_size=30, timeout=0.01, idle=0.02)
        if kill_at == MOMENTS[0]:
            patch.setattr(checkpoints.replacing, "write", hooked(checkpoints.replacing.write, True))
        elif kill_at is not None:
            patch.setattr(source, "settled", hooked(source.settled, kill_at == MOMENTS[1]))
        saved = Checkpoint(path, every=40, peers=peers)
        with contextlib.closing(saved), contextlib.suppress(KilledError):
            Run(source, LASVMClassifier(max_support_vectors=20), checkpoint=saved).execute()


def learnt(folder):
    """Return how many messages the members have learnt, by their checkpoints."""
    return sum(
        model_file.read(path)[1]["states"]["report"]["learnt"] for path in folder.glob("*.ckpt")
    )


@pytest.mark.parametrize("seed", range(4))
def test_members_that_die_again_and_again(seed, tmp_path, monkeypatch):
    rng, commits, peers = random.Random(seed), {}, str(tmp_path / "*.ckpt")
    for _ in range(12):
        partitions = rng.choice([[0], [1], [0, 1]])
        path = tmp_path / f"{rng.choice('abc')}.ckpt"
        consumer = Member(commits, partitions)
        learn(consumer, path, peers, monkeypatch, rng.choice(MOMENTS), rng.randint(1, 4))
    assert 0 < learnt(tmp_path)
    learn(Member(commits, [0, 1]), tmp_path / "c.ckpt", peers, monkeypatch)
    assert learnt(tmp_path) == 2 * N
    assert commits == {0: N, 1: N}


def test_without_peers_the_window_is_there(tmp_path, monkeypatch):
    """What the documentation says of groups: this is why there are peers."""
    commits = {}
    learn(Member(commits, [0]), tmp_path / "a.ckpt", None, monkeypatch, MOMENTS[1], 5)
    learn(Member(commits, [0]), tmp_path / "b.ckpt", None, monkeypatch)
    assert learnt(tmp_path) > N


def test_what_is_no_checkpoint_is_not_a_peer(tmp_path, monkeypatch):
    LASVMClassifier().save(tmp_path / "model.ckpt")
    with pytest.raises(CheckpointError, match=r"model.ckpt, one of peers=.*members only"):
        learn(Member({}, [0]), tmp_path / "a.ckpt", str(tmp_path / "*.ckpt"), monkeypatch)


def test_checkpoints_of_another_cluster_are_refused(tmp_path):
    """Of one's own, and of members: the same offsets are other messages there."""

    def learn_from(cluster, path, peers=None):
        heard = Heard()
        heard.ids = {"the cluster": cluster}
        consumer = Member({}, [0])
        options = {"topics": ["t"], "timeout": 0.01, "idle": 0.02, "heard": heard}
        source = KafkaSource(consumer, "y", **options)
        saved = Checkpoint(path, every=100, peers=peers)
        return Run(source, LASVMClassifier(max_support_vectors=20), checkpoint=saved).execute()

    assert learn_from("A", tmp_path / "a.ckpt").rows == N
    for path, peers in (("a.ckpt", None), ("b.ckpt", str(tmp_path / "*.ckpt"))):
        with pytest.raises(CheckpointError, match="the cluster has the id B now, and had A"):
            learn_from("B", tmp_path / path, peers)
