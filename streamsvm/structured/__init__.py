"""Sequences of tokens: their features, the best sequence of labels, and chunk scores."""
