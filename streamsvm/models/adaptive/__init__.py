"""Several kernel models that learn the same rows, of which the best of late predicts."""
