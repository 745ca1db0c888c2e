"""Machine code: reading cubins, and listing and decoding what is in them."""
