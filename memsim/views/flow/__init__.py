"""What moves between global arrays, registers and shared arrays."""
