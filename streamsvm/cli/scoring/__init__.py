"""`streamsvm predict` of a folder into a folder."""
