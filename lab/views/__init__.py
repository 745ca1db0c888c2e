"""What an experiment found: text and records."""
