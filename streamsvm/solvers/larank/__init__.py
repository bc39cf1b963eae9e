"""LaRank."""
