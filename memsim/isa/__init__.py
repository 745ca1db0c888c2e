"""What machine instructions are: one record for each opcode, and programs of decoded instructions."""
