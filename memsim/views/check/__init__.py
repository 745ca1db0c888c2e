"""Which budgets are broken, and where: `memsim check`, in every format."""
