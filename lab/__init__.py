"""The laboratory: how the rules of the model were found, for people with a GPU that nobody measured."""
