"""Kernel values of rows: kernels bound to a store, blocks of fresh rows, the cache."""
