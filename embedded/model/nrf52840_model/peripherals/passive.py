"""Peripherals that can be configured and then do nothing: their registers are memory, their tasks have no effect.

USBD at 0x40027000 (PS 6.35), interrupt 39, as on a board without a cable: whether VBUS is present is told by POWER
(`clock_power`), which says no. TEMP at 0x4000C000 (PS 6.28), which takes its trim values at start-up (erratum 66).
"""

from __future__ import annotations

from .base import Peripheral


class Passive(Peripheral):
    """A peripheral on which nothing ever happens."""
