"""Model files: data, never code."""
