"""Labels: which there are, columns of them, probabilities."""
