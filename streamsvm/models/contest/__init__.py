"""Kernel models that learn the same rows, of which the one that errs least predicts."""
