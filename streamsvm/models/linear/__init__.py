"""Linear functions of the features, by stochastic gradients."""
