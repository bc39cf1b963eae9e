"""Events read by machine code."""
