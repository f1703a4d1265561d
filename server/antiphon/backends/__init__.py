"""Backends: who answers."""
