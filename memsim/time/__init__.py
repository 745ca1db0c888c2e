"""One multiprocessor in time: estimated cycles of a launch, from machine code alone (docs/time-model.md)."""
