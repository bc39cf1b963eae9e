"""Runs over a stream."""
