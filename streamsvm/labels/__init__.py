"""Class labels learnt from a stream, columns of labels, and probabilities from margins."""
