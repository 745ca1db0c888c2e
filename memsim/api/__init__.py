"""The Python interface: load a module, analyze or run a kernel."""
