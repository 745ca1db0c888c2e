"""Which accesses to memory are ordered before which others, and what nothing orders."""
