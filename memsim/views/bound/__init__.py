"""Lower bounds in cycles: `memsim bound`."""
