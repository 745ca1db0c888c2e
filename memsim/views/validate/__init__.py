"""Predicted beside measured: `memsim validate`."""
