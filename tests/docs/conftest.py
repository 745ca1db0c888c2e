"""The documents' commands are run as those of the command line's tests."""

from tests.cli.conftest import memsim

__all__ = ["memsim"]
