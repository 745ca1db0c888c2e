"""How each access to shared memory uses the banks: `memsim heatmap`."""
