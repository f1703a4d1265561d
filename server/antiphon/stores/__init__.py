"""Stores: where responses and their history are kept."""
