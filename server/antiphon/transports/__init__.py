"""Transports: thin adapters between a protocol and the engine."""
