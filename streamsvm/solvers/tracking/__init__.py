"""The solvers of averaged tracking, with kernel values and with explicit weights."""
