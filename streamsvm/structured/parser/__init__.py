"""The solver of sentences with bags of symbols: Algorithm 24, roles of words, and rankings."""
