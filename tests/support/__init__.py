"""What the tests share: stand-ins for backends, stores and clocks, and generated messages."""
