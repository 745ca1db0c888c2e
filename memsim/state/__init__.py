"""The contents of registers and memory for many threads at once."""
