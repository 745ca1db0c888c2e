"""The counts of variants, and which of them no other one beats: `memsim sweep`."""
