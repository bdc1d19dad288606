"""Machines and programs for the tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from thumb import Program  # noqa: E402


@pytest.fixture
def machine():
    """A chip whose program is a branch to itself: the tests act as the firmware, register by register."""
    return Program().label("main").branch("main").machine()
