"""Events and batches as rows of numbers: names of features, checks, hashing, sparse rows."""
