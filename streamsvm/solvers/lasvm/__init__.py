"""LASVM."""
