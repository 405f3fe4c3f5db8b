"""Fixtures that several files here share."""

import pytest
from emulated_driver import other_library


@pytest.fixture
def other():
    """Another library that uses the driver beside Weft."""
    return other_library()
