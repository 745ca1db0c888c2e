"""What `memsim sanitize` prints."""
