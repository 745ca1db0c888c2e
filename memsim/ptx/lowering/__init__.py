"""PTX lowered to a program of machine instructions: a plain assembler that optimises nothing."""
