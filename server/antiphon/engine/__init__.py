"""The engine: runs, from a checked request to a stored response."""
