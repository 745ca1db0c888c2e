"""What registers and memory hold, for many threads at once: numbers, and no instructions."""
