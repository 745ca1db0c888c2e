"""Two analyses side by side: `memsim compare`."""
