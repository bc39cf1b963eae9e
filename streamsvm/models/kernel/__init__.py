"""Kernel expansions: solvers, scales, width and costs as one model."""
