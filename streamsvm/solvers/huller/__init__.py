"""The solver of the Huller."""
