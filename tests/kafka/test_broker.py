"""The broker of these tests is what it should be, and a client that it refuses is told why."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamsvm.cli.main import main
from tests.brokers import QUIET
from tests.kafka.broker import KINDS, PASSWORD
from tests.kafka.conftest import started
from tests.kafka.runs import made

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def guarded():
    with started(1, tuple(KINDS)) as running:
        yield running


def settings(cluster, kind, user="alice", password=PASSWORD):
    """Return a client's settings for one kind of listener."""
    protocol, certificate = KINDS[kind]
    found = {"bootstrap.servers": cluster.addresses[kind], "security.protocol": protocol}
    if certificate is not None:
        found["ssl.ca.location"] = str(cluster.certificates[kind])
    if protocol.startswith("SASL"):
        found |= {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_listeners(guarded, kind):
    is_right = kind not in ("expired", "other_host")
    admin = AdminClient(settings(guarded, kind) | QUIET)
    try:
        assert len(admin.list_topics(timeout=5 if is_right else 1).brokers) == 1
    except KafkaException:
        assert not is_right


def test_three_nodes():
    with started(3) as running:
        admin = AdminClient({"bootstrap.servers": running.address} | QUIET)
        found = admin.list_topics(timeout=10)
        assert len(found.brokers) == 3


def consume(address, topic, settings, *more):
    """Run the command in this process; return its exit code."""
    command = ["consume", "--brokers", address, "--topic", topic, "--target", "label", "--quiet"]
    command += ["--learner", "sgd", "--exclude", "id", "--no-monitor", "--idle", "1.5", *more]
    return main(command + [part for n, v in settings.items() for part in ("--set", f"{n}={v}")])


@pytest.mark.parametrize(
    ("kind", "changed", "said"),
    [
        ("sasl", {"sasl.password": "x"}, "Invalid username or password: check sasl.username"),
        ("sasl", {"sasl.mechanism": "SCRAM-SHA-256"}, "supported mechanisms: PLAIN"),
        ("tls", {"ssl.ca.location": None}, "certificate there is refused: self-signed certificate"),
        ("expired", {}, "certificate there is refused: certificate has expired"),
        ("other_host", {}, "certificate there is refused: IP address mismatch"),
        ("plain", {"security.protocol": "SSL"}, "the listener there does not speak TLS"),
        ("tls", {"security.protocol": "PLAINTEXT"}, "the listener there speaks TLS: --set"),
        ("sasl", {"security.protocol": "PLAINTEXT"}, "it may want SASL: --set"),
    ],
)
def test_why_no_broker_answers(guarded, capsys, kind, changed, said):
    all_settings = settings(guarded, kind) | changed
    address = all_settings.pop("bootstrap.servers")
    assert consume(address, "t", {n: v for n, v in all_settings.items() if v is not None}) == 1
    assert said in capsys.readouterr().err


def test_passwords_in_a_file_and_in_the_environment(guarded, capsys, tmp_path, monkeypatch):
    made(guarded.address, "secret", 1, 20)
    given = settings(guarded, "sasl")
    address, password = given.pop("bootstrap.servers"), given.pop("sasl.password")
    file = tmp_path / "settings"
    file.write_text(f"# of alice\n\nsasl.password={password}\n")
    assert consume(address, "secret", given, "--set-file", str(file)) == 0
    monkeypatch.setenv("STREAMSVM_KAFKA_SASL_PASSWORD", password)
    assert consume(address, "secret", given) == 0
    # Who may do nothing is told that.
    assert consume(address, "secret", given | {"sasl.username": "bob"}) == 1
    assert "authorization failed" in capsys.readouterr().err


@pytest.mark.parametrize(("reset", "code"), [("latest", 0), ("none", 1), ("earliest", 0)])
def test_where_a_new_group_starts(guarded, capsys, reset, code):
    if reset == "latest":
        made(guarded.address, "reset", 1, 20)
    given = {"auto.offset.reset": reset}
    assert consume(guarded.address, "reset", given, "--group", reset, "--json") == code
    out, error = capsys.readouterr()
    assert f'"rows": {20 if reset == "earliest" else 0},' in out or "no previously" in error
    assert consume(guarded.address, "reset", {"group.id": "x"}) == 2
