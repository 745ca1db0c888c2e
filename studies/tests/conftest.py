"""A GPU that is none, no known width of the terminal, and what needs a real GPU is left out."""

from tests.conftest import no_known_width, pytest_collection_modifyitems
from tests.validate.conftest import any_gpu, gpu

__all__ = ["any_gpu", "gpu", "no_known_width", "pytest_collection_modifyitems"]
