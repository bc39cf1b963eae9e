"""Base classes of the learners, and the functions that they share."""
