"""Machine code: reading cubins, disassembling them and decoding their instructions."""
