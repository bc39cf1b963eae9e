"""The trial of scale, width and C: its race, errors of candidates, features that matter."""
