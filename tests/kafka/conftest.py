import pytest

from tests.kafka import broker as kafka


def started(*args):
    """Give a cluster of Apache Kafka, see `tests.kafka.broker.cluster`; skip without one."""
    if (why := kafka.why_not()) is not None:
        pytest.skip(why)
    return kafka.cluster(*args)


@pytest.fixture(scope="session")
def broker():
    """Give one node that all tests use: `broker.address`; tests do not end it."""
    with started() as running:
        yield running


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Dead letters are written where the command runs."""
    monkeypatch.chdir(tmp_path)
