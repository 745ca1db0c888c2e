"""Where the words of a shared array lie in the banks, and which thread wrote each."""
