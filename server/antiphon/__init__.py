"""Antiphon: a self-hosted Responses API server, defined once in protobuf."""
