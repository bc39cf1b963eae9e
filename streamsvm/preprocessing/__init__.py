"""Transformers for pipelines, which change the features of an event before a learner gets it."""
