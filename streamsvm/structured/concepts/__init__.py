"""The solver of concept labels: words, and what a world says of the things they may mean."""
