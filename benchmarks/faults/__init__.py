"""Faults that are made on purpose, and what happens then."""
