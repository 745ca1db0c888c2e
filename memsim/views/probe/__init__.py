"""Rules and rates measured on a GPU: `memsim probe`."""
