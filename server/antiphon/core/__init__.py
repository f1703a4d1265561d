"""The rules of the Responses API: pure, without gRPC, HTTP or an event loop."""
