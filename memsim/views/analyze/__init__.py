"""What every access costs: `memsim analyze`."""
