"""The version of memsim, as documents and files that it writes have it."""

__version__ = "0.1.0"
