"""The typed gRPC services."""
