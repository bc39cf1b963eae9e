"""Transformers in front of learners."""
