"""Ours and the peers, side by side: see `__main__`."""
