"""Tells within seconds whether the brokers of a cluster answer."""

import time
from typing import Any

from connectors.errors import SourceError
from connectors.kafka.messages import is_passing


def check_reachable(consumer: Any, seconds: float = 15.0) -> None:
    """Wait so many seconds until a broker answers a `confluent_kafka.Consumer`; else a SourceError.

    The client itself tries again for ever, and says so only in its log.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            # In short turns, so that Ctrl-C is noticed.
            consumer.list_topics(timeout=max(0.01, min(0.5, end - time.monotonic())))
            return
        except Exception as exception:
            error = exception.args[0] if exception.args else exception
            passes = hasattr(error, "code") and is_passing(error)
            if not passes or time.monotonic() >= end:
                text = error.str() if hasattr(error, "str") else error
                waited = f" within {seconds:g} s" if passes else ""
                raise SourceError(
                    f"no broker answers{waited} ({text}): check the address, which is "
                    "HOST:PORT, the network, and security.protocol"
                ) from exception
