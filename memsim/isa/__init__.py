"""The instruction set: a record for each opcode, and programs of decoded instructions."""
