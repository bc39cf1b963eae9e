"""What learners of label sequences share."""
