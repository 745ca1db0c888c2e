"""Validation: predictions compared with Nsight Compute's counters, live on a GPU or from recordings."""
