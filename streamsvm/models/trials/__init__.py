"""Candidates that learn the same rows, compared by their errors beyond chance."""
