"""How fast the catalogue's SGEMMs are beside cuBLAS: measured on a GPU, or from a recording."""
