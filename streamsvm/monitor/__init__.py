"""How far a model is from the batch optimum: certificates, measured gaps, and the monitor."""
