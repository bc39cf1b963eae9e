"""The one door to the interpreter's C functions: machine code that reads events."""

from streamsvm.native_events.availability import is_on, switch

__all__ = ["is_on", "switch"]
