"""What learners of exact solutions share."""
