"""Statements about a stream that hold at all of its moments at once."""
