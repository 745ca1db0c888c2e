"""What would help: `memsim suggest`, and the lines of it that other verbs show."""
