"""Output formats: one module each, all from the same `Analysis` records. Nothing is computed here."""
