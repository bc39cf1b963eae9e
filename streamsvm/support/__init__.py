"""Where examples live: rows, cached kernel rows, seeded draws."""
