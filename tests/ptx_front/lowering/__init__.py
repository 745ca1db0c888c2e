"""Lowering of PTX to machine instructions: a plain, non-optimizing assembler."""
