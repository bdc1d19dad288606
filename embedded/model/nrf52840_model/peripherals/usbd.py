"""USBD (PS 6.35), as far as a board without a cable: it can be configured, and nothing ever happens on it.

Whether VBUS is present is told by POWER (`clock_power`), which says no.
"""

from __future__ import annotations

from .base import Peripheral


class Usbd(Peripheral):
    """USBD at 0x40027000, interrupt 39. Its registers are memory and its tasks do nothing."""
