"""What a Python program imports when memsim is its CUDA device: its folder is in `PYTHONPATH`."""
