"""Whether the brokers of a cluster answer, why not, and which cluster and topics they are."""

import contextlib
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from connectors.errors import SourceError
from connectors.identity import check_ids
from connectors.kafka.messages import is_passing

# Errors of librdkafka that name a cause, and what to do; the first of these that was heard is said.
_CAUSES = {
    -169: "check sasl.username, sasl.password, sasl.mechanism and security.protocol",
    -181: "check ssl.ca.location and the broker's certificate",
    -193: "check the name of the host",
    -195: "check the address, which is HOST:PORT, the network, and security.protocol",
}
_ASK_SECONDS = 30.0
"""So often it is looked whether topics are still what they were."""

_DECIDED = frozenset({-169, -181})
"""Further attempts end as the first one: the broker answers, and refuses."""


class Heard:
    """What a client of confluent-kafka says beside messages: errors, results of commits, ids.

    A source that is given it looks at the results of commits, says why no broker answers, and
    refuses a checkpoint of another cluster, or of a topic that was made anew under its name.

    Attributes
    ----------
    settings
        Callbacks, which belong to the settings of the consumer.
    ids
        Ids of the cluster and its topics, by what they are of: see `identify`.

    Examples
    --------
    >>> from connectors.kafka.reachable import Heard
    >>> heard = Heard()
    >>> settings = {"bootstrap.servers": "localhost:9092", "group.id": "g"} | heard.settings
    >>> sorted(heard.settings), heard.why()
    (['error_cb', 'on_commit'], None)

    """

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {"error_cb": self._error, "on_commit": self._committed}
        self.ids: dict[str, str] = {}
        self._errors: deque[Any] = deque(maxlen=20)
        self._failed: deque[Exception] = deque(maxlen=20)
        # How to ask for the ids of topics, the answers that are awaited, and when to ask again.
        self._ask: Callable[[], dict[str, Any]] = dict
        self._asked: dict[str, Any] = {}
        self._next = 0.0

    def _error(self, error: Any) -> None:
        self._errors.append(error)

    def _committed(self, error: Any, partitions: Sequence[Any]) -> None:
        errors = [error, *(partition.error for partition in partitions or ())]
        if (first := next((one for one in errors if one is not None), None)) is not None:
            self._failed.append(RuntimeError(first))

    def failed_commits(self) -> list[Exception]:
        """Return why commits have failed since the last call."""
        failed = list(self._failed)
        self._failed.clear()
        return failed

    def why(self) -> str | None:
        """Return what the client said last about why no broker answers; None: nothing."""
        found = {error.code(): error.str() for error in self._errors}
        code = next((code for code in _CAUSES if code in found), None)
        if code is None:
            return None
        return f"{found[code].partition(' (after ')[0]}: {_CAUSES[code]}"

    @property
    def is_refused(self) -> bool:
        """Whether the broker has refused the client, by password or certificate."""
        return any(error.code() in _DECIDED for error in self._errors)

    def forget(self) -> None:
        """Forget errors: a broker answers."""
        self._errors.clear()

    def identify(self, admin: Any, topics: Sequence[str], seconds: float = 5.0) -> None:
        """Ask for the ids of the cluster and of topics, as far as a broker tells them.

        `admin` is an AdminClient of confluent-kafka.
        """
        from confluent_kafka import TopicCollection

        with contextlib.suppress(Exception):
            about = admin.list_topics(timeout=seconds)
            # Without a controller it is a mock, which describes nothing.
            if about.controller_id < 0:
                return
            self.ids["the cluster"] = about.cluster_id
        names = list(topics)
        self._ask = lambda: admin.describe_topics(TopicCollection(names), request_timeout=seconds)
        # A pattern of names cannot be described.
        with contextlib.suppress(Exception):
            self.ids |= _ids_of(self._ask(), seconds)
            self._next = time.monotonic() + _ASK_SECONDS

    def check(self) -> None:
        """Ask for the ids of topics again, each half minute, without waiting for the answer.

        SnapshotError: a topic was made anew under its name. The client would read on in it, at the
        offsets of the old one.
        """
        if self._asked and all(asked.done() for asked in self._asked.values()):
            asked, self._asked = self._asked, {}
            check_ids(self.ids, _ids_of(asked, 0.0))
        if self._next and not self._asked and time.monotonic() >= self._next:
            self._next = time.monotonic() + _ASK_SECONDS
            self._asked = self._ask()


def _ids_of(asked: dict[str, Any], seconds: float) -> dict[str, str]:
    """Return the ids of topics, of which a description was asked for; without those of failures."""
    found = {}
    for topic, future in asked.items():
        with contextlib.suppress(Exception):
            found[f"topic `{topic}`"] = str(future.result(seconds).topic_id)
    return found


def check_reachable(consumer: Any, seconds: float = 15.0, heard: Heard | None = None) -> None:
    """Wait so many seconds until a broker answers a `confluent_kafka.Consumer`; else a SourceError.

    The client itself tries again for ever, and says so only in its log. With `heard`, whose
    `settings` it was made with, the error says why.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            # In short turns, so that Ctrl-C is noticed.
            consumer.list_topics(timeout=max(0.01, min(0.5, end - time.monotonic())))
            if heard is not None:
                heard.forget()
            return
        except Exception as exception:
            error = exception.args[0] if exception.args else exception
            passes = hasattr(error, "code") and is_passing(error)
            why = None
            if heard is not None:
                consumer.poll(0)  # callbacks are called
                passes, why = passes and not heard.is_refused, heard.why()
            if not passes or time.monotonic() >= end:
                text = error.str() if hasattr(error, "str") else error
                waited = f" within {seconds:g} s" if passes else ""
                why = why or f"{text}: {_CAUSES[-195]}"
                raise SourceError(f"no broker answers{waited} ({why})") from exception


def tls_findings(address: str, protocol: str, ca: str | None) -> str | None:
    """Return what a TLS handshake finds at HOST:PORT that the client does not say; None: nothing.

    `protocol` is the client's ``security.protocol``; `ca` a file of certificates that are trusted.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    expects_tls = protocol.upper().endswith("SSL")
    try:
        context = ssl.create_default_context(cafile=ca)
        with socket.create_connection((host, int(port)), 2.0) as raw:
            raw.settimeout(2.0)
            context.wrap_socket(raw, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        if expects_tls:
            return f"the certificate there is refused: {error.verify_message}"
    except ssl.SSLError:
        if expects_tls:
            return "the listener there does not speak TLS: --set security.protocol"
        return "the listener there does not speak TLS; it may want SASL: --set security.protocol"
    except (OSError, ValueError):
        return None
    if expects_tls:
        return None
    return "the listener there speaks TLS: --set security.protocol=SSL, or SASL_SSL"
