"""Labels that repeat: what of a stream compiled code learns beside its models."""
