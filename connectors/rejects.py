"""What is kept of a message that is no event: a reason and its payload, as far as they show."""

from typing import Any

from connectors.kafka.messages import Message
from connectors.payloads import PayloadError
from connectors.source import Position, Reject

MOST_TOKENS = 100_000
"""A sentence with more is none: it would take memory without end."""

_MOST_SHOWN = 2000


def reject_of(place: str, message: Message, error: Exception) -> Reject:
    """Return what is set aside for a message of a partition; never fails, whatever it holds."""
    reason = shown(error)
    if isinstance(error, UnicodeError):
        reason = f"a name, a text or the label is no valid Unicode: {reason}"
    elif not isinstance(error, PayloadError):
        reason = f"the event cannot be read: {type(error).__name__}: {reason}"
    kind = "undecodable" if isinstance(error, PayloadError) and error.__cause__ else "not an event"
    return Reject(Position(place, message.offset), kind, reason, shown(message.value))


def shown(value: Any) -> str:
    """Return a payload, a row or an error as some 2,000 characters that can be encoded."""
    try:
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    except Exception as error:
        # A mapping may hold a number of too many digits, or an object of your own.
        text = f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"
    if len(text) > _MOST_SHOWN:
        text = f"{text[:_MOST_SHOWN]}... ({len(text):,} characters)"
    # A lone surrogate, which JSON may hold, cannot be encoded: it is written as \\ud800.
    return text.encode("utf-8", "backslashreplace").decode()
