"""What linear learners share: weights, rate, classes."""
