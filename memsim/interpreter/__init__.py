"""Executes launches by machine code: kernels as operations on the lanes of a warp (native/interpreter.c)."""
