"""Kernel models that learn the same rows and are compared by their errors beyond chance."""
