"""Sources of text files: CSV and JSON lines."""
