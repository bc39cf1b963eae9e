"""How events and frames become rows."""
