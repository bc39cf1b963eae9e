"""The solver of the stochastic batch perceptron."""
