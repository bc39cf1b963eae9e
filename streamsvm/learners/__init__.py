"""River-compatible learners around the solvers."""
