"""The solver of LASVM."""
