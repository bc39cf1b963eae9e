"""Runs of a source through a model: the loop, bad events, late labels, checkpoints, serving."""
