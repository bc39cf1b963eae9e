"""Exact solutions of the examples kept, changed as examples come and go."""
