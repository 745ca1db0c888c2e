"""A GPU that is none, and what needs a real one is left out."""

from tests.conftest import pytest_collection_modifyitems
from tests.validate.conftest import any_gpu, gpu

__all__ = ["any_gpu", "gpu", "pytest_collection_modifyitems"]
