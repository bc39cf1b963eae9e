"""Rows that a learner passed by, kept to be looked at again when it finishes."""
