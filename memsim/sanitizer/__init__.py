"""Errors of a launch, found by executing its machine code: two accesses to memory that nothing orders."""
