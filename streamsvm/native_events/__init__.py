"""Fast paths of single events: compiled code that reads Python's dicts by the interpreter's API.

Only this package uses objects by their addresses.
"""

from streamsvm.native_events.availability import is_on, switch

__all__ = ["is_on", "switch"]
