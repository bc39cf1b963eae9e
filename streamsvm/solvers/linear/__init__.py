"""SGD and SGD-QN."""
