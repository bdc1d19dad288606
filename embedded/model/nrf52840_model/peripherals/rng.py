"""RNG (PS 6.21): one byte after another from a seeded generator, at the speed of the hardware.

The first byte takes 128 µs longer; each takes 30 µs, or 120 µs with bias correction. Failures a test can order: `silent`
(VALRDY never comes) and `constant` (every byte is the same).
"""

from __future__ import annotations

import random

from ..schedule import MICROSECOND
from .base import Peripheral

START, STOP = 0x000, 0x004
VALRDY = 0x100
CONFIG, VALUE = 0x504, 0x508
MODES = ("ok", "silent", "constant")


class Rng(Peripheral):
    """RNG at 0x4000D000, interrupt 13."""

    SHORTCUTS = {0: (VALRDY, STOP)}
    mode = "ok"

    def __init__(self, machine, base: int, seed: int):
        self._random = random.Random(f"rng {seed}")
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self._alarm = None

    def fail(self, mode: str) -> None:
        """Sets how the generator behaves from now on, over resets too; a running one goes on accordingly."""
        self.mode = mode
        if mode != "silent" and self._alarm is not None:
            self._alarm.cancel()
            self._next(0)

    def task(self, offset: int) -> None:
        if offset == START and self._alarm is None:
            self._next(128 * MICROSECOND)
        elif offset == STOP and self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _next(self, extra: int) -> None:
        period = 120 if self.registers.get(CONFIG, 0) & 1 else 30
        self._alarm = self.after(extra + period * MICROSECOND, self._byte)

    def _byte(self) -> None:
        self._next(0)
        if self.mode == "silent":
            return
        self.registers[VALUE] = self._random.randrange(256) if self.mode == "ok" else 0
        self.event(VALRDY)
