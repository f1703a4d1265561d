"""The REST surface, and the gRPC service that carries it through the gateway."""
