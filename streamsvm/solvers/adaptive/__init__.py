"""Choice among models that learn the same stream, by their errors of late."""
