"""Errors of Kafka clients: which of them pass by themselves."""

from typing import Any

from connectors.errors import SourceError

# Errors of librdkafka after which the client retries by itself: transport, resolving, all brokers
# down, timed out.
_CONNECTING = frozenset({-195, -193, -187, -185})
# Temporary errors of the cluster: leaders and coordinators move, requests time out.
_BUSY = frozenset({5, 6, 7, 9, 13, 14, 15, 16, 19})
# A rebalance is under way: illegal generation, unknown member, rebalance in progress; no offset.
_REBALANCING = frozenset({22, 25, 27, -168})
_REBALANCING_NAMES = frozenset(
    {
        "CommitFailedError",
        "IllegalGenerationError",
        "IllegalStateError",
        "RebalanceInProgressError",
        "UnknownMemberIdError",
    }
)


_PARTITION_EOF = -191


def is_message(raw: Any, name: str) -> bool:
    """Tell whether what a client returned is a message, not a passing error; raise other errors."""
    error = getattr(raw, "error", None)
    error = error() if callable(error) else error
    if error is None:
        return True
    if error.code() == _PARTITION_EOF or is_passing(error):
        return False
    raise SourceError(f"`{name}`: the broker says: {error}")


def is_passing(error: Any) -> bool:
    """Tell whether an error of confluent-kafka is temporary."""
    return error.code() in _CONNECTING | _BUSY or bool(error.retriable())


def will_pass(exception: Exception) -> bool:
    """Tell whether a failed commit is worth another try: it was temporary, or a rebalance."""
    error = exception.args[0] if exception.args else None
    if error is not None and hasattr(error, "code") and hasattr(error, "retriable"):
        return is_passing(error) or error.code() in _REBALANCING
    name = type(exception).__name__
    return bool(getattr(exception, "retriable", False)) or name in _REBALANCING_NAMES
