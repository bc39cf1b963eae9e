"""The numbers of the pages: measured, kept and written by one command (`benchmarks.pages`)."""
