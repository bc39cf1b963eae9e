"""Apache Kafka on loopback, of one or three nodes: `python -m tests.kafka.broker --help`.

Java 17 and Maven bring its jars once into ``~/.cache/streamsvm-kafka/VERSION``, or where
STREAMSVM_KAFKA_JARS says. Each node is a process of its own, ended by its own id.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
VERSION = re.search(r"<kafka.version>(.*)</kafka.version>", POM.read_text())[1]
JARS = Path(
    os.environ.get("STREAMSVM_KAFKA_JARS", Path.home() / ".cache/streamsvm-kafka" / VERSION)
)
PASSWORD = "secret"
"""Of alice, who may do anything, and of bob, who may do nothing; of the stores of keys."""

# What listeners can be asked for: protocol, and how the certificate is made.
KINDS = {
    "plain": ("PLAINTEXT", None),
    "tls": ("SSL", ("ip:127.0.0.1", "-1d", 30)),
    "expired": ("SSL", ("ip:127.0.0.1", "-10d", 5)),
    "other_host": ("SSL", ("dns:other.invalid", "-1d", 30)),
    "sasl": ("SASL_PLAINTEXT", None),
    "sasl_tls": ("SASL_SSL", ("ip:127.0.0.1", "-1d", 30)),
}
_JAVA = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"]
_COMMON = """
process.roles=broker,controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
sasl.enabled.mechanisms=PLAIN
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:alice
group.initial.rebalance.delay.ms=0
group.consumer.session.timeout.ms=6000
group.consumer.min.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=500
auto.create.topics.enable=false
log.retention.check.interval.ms=2000
log.cleaner.backoff.ms=1000
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
"""


def bring_jars():
    """Copy the broker's jars into the cache, if they are not there."""
    if not list(JARS.glob("kafka_2.13-*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        subprocess.run(["mvn", "-q", "-B", "-f", POM, *goal], check=True)


def why_not():
    """Return why no broker can be started; None: it can."""
    if shutil.which("java") is None:
        return "no java: Apache Kafka needs Java 17"
    if not list(JARS.glob("kafka_2.13-*.jar")):
        return f"no jars of Apache Kafka in {JARS}: python -m tests.kafka.broker --jars"
    return None


class Node:
    """One broker, which is a controller, too."""

    def __init__(self, folder, settings, ports):
        self.folder, self.ports = folder, ports
        self.process = None
        folder.mkdir(parents=True)
        (folder / "server.properties").write_text(settings)

    def format(self, cluster_id):
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id]
        command = [*_JAVA, *tool, "-c", str(self.folder / "server.properties")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*_JAVA, "kafka.Kafka", str(self.folder / "server.properties")],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def wait(self, seconds=60):
        """Wait until all listeners answer."""
        end = time.monotonic() + seconds
        for port in self.ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 0.2).close()
                    break
                except OSError:
                    ended = self.process.poll() is not None
                    assert not ended and time.monotonic() < end, f"see {self.folder}/log"
                    time.sleep(0.05)

    def send(self, number):
        """Send a signal: SIGSTOP freezes the node, SIGCONT lets it go on."""
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """End the node; it can be started again."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            # A frozen one takes SIGTERM when it goes on.
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


class Cluster:
    """Nodes of one cluster, and their addresses by kind of listener."""

    def __init__(self, folder, n_nodes=1, kinds=("plain",)):
        self.folder, self.certificates = Path(folder), {}
        ports = iter(_free_ports(n_nodes * (len(kinds) + 2)))
        mine = [[next(ports) for _ in range(len(kinds) + 2)] for _ in range(n_nodes)]
        voters = ",".join(f"{i}@127.0.0.1:{p[0]}" for i, p in enumerate(mine, 1))
        self.folder.mkdir(parents=True, exist_ok=True)
        security = "".join(self._security(kind) for kind in kinds)
        protocols = {"CONTROLLER": "PLAINTEXT", "INSIDE": "PLAINTEXT"}
        protocols |= {kind.upper(): KINDS[kind][0] for kind in kinds}
        self.nodes = []
        for i, numbers in enumerate(mine, 1):
            at = [f"{name}://127.0.0.1:{n}" for name, n in zip(protocols, numbers, strict=True)]
            maps = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
            folder = self.folder / f"node{i}"
            settings = (
                f"node.id={i}\ncontroller.quorum.voters={voters}\nlisteners={','.join(at)}\n"
                f"advertised.listeners={','.join(at[1:])}\nlog.dirs={folder}/data\n"
                f"listener.security.protocol.map={maps}\n"
                f"offsets.topic.replication.factor={n_nodes}\n"
                f"transaction.state.log.replication.factor={n_nodes}\n"
                f"transaction.state.log.min.isr={1 if n_nodes == 1 else 2}\n"
            )
            self.nodes.append(Node(folder, settings + _COMMON + security, numbers))
        self.addresses = {
            kind: ",".join(f"127.0.0.1:{numbers[j]}" for numbers in mine)
            for j, kind in enumerate(kinds, 2)
        }
        self.address = self.addresses.get("plain")

    def start(self):
        identity = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
        for node in self.nodes:
            node.format(identity)
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait()

    def end(self):
        for node in self.nodes:
            node.end(signal.SIGKILL)

    def _security(self, kind):
        """Return the settings of a listener: who may come, and its certificate."""
        protocol, certificate = KINDS[kind]
        name, found = f"listener.name.{kind}", ""
        if protocol.startswith("SASL"):
            module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
            users = " ".join(f'user_{who}="{PASSWORD}"' for who in ("alice", "bob"))
            found += f"{name}.plain.sasl.jaas.config={module} {users};\n"
        if certificate is not None:
            host, start, days = certificate
            store = self.folder / f"{kind}.p12"
            self.certificates[kind] = store.with_suffix(".pem")
            keys = ["-keystore", str(store), "-storepass", PASSWORD, "-alias", "node"]
            made = ["-keyalg", "EC", "-dname", f"CN={kind}", "-ext", f"san={host}"]
            made += ["-startdate", start, "-validity", str(days), "-storetype", "PKCS12"]
            for command in (
                ["-genkeypair", *keys, *made],
                ["-exportcert", "-rfc", *keys, "-file", str(self.certificates[kind])],
            ):
                subprocess.run(["keytool", *command], check=True, capture_output=True)
            found += f"{name}.ssl.keystore.location={store}\n{name}.ssl.keystore.type=PKCS12\n"
            found += f"{name}.ssl.keystore.password={PASSWORD}\n"
        return found


@contextmanager
def cluster(n_nodes=1, kinds=("plain",)):
    """Give a running cluster of its own, of so many nodes; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="kafka", ignore_cleanup_errors=True) as folder:
        found = Cluster(folder, n_nodes, kinds)
        try:
            found.start()
            yield found
        finally:
            found.end()


def _free_ports(n):
    # Below those that the system gives to connections, so that nobody takes them meanwhile; and far
    # from those of another worker of the tests.
    taken = []
    for port in range(20_000 + 100 * os.getpid() % 10_000, 32_000):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        taken.append(port)
        if len(taken) == n:
            return taken
    raise OSError("no free ports")


def main():
    parser = argparse.ArgumentParser(description="Run Apache Kafka on loopback until Ctrl-C.")
    parser.add_argument("--jars", action="store_true", help="only bring the jars")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["plain"])
    options = parser.parse_args()
    bring_jars()
    print(f"jars of Apache Kafka {VERSION}: {JARS}", flush=True)
    if options.jars:
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with cluster(options.nodes, options.kinds) as running:
        print(running.addresses, running.certificates or "", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
