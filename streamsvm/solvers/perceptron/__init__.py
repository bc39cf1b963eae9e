"""Kernel perceptrons, passive-aggressive learning and kernel Pegasos, with budgets."""
