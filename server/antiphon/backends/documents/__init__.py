"""Documents: JSON that fits a JSON Schema, made in a process of its own."""
