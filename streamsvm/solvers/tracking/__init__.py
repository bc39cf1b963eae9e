"""Averaged tracking."""
