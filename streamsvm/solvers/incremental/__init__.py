"""The solver of exact incremental and decremental SVMs."""
