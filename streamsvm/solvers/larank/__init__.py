"""The solver of LaRank."""
