"""CLOCK and POWER: two peripherals that share a page and an interrupt (PS 5.3 and 5.4).

The high-frequency crystal starts in 360 µs; the low-frequency clock in 250 ms from a crystal and 600 µs from the RC
oscillator (PS 5.4). RESETREAS accumulates reasons until the firmware clears them. The power-fail comparator warns
while the supply is low and POFCON enables it. There is no VBUS: USBREGSTATUS reads 0 and no USB event ever occurs.
"""

from __future__ import annotations

from ..schedule import MICROSECOND, MILLISECOND
from .base import Peripheral

HFCLKSTART, HFCLKSTOP, LFCLKSTART, LFCLKSTOP = 0x000, 0x004, 0x008, 0x00C
HFCLKSTARTED, LFCLKSTARTED, POFWARN = 0x100, 0x104, 0x108
HFCLKRUN, HFCLKSTAT, LFCLKRUN, LFCLKSTAT, LFCLKSRC = 0x408, 0x40C, 0x414, 0x418, 0x518
RESETREAS, POFCON, GPREGRET, GPREGRET2, USBREGSTATUS, SYSTEMOFF = 0x400, 0x510, 0x51C, 0x520, 0x438, 0x500
RUNNING = 1 << 16

# Bits of RESETREAS.
REASONS = {"pin": 1 << 0, "watchdog": 1 << 1, "soft": 1 << 2, "lockup": 1 << 3}


class ClockPower(Peripheral):
    """CLOCK and POWER at 0x40000000, interrupt 0."""

    reasons = 0
    retained: dict[int, int] = {}
    supply_low = False

    def reset_by(self, reason: str) -> None:
        """Reset with its reason recorded; a new supply of power forgets the reasons and the retained registers."""
        if reason == "power-on":
            self.reasons, self.retained, self.supply_low = 0, {}, False
        else:
            self.reasons |= REASONS[reason]
            if reason in ("pin", "watchdog"):
                self.retained = {}
        self.reset()

    def task(self, offset: int) -> None:
        if offset == HFCLKSTART:
            self.registers[HFCLKRUN] = 1
            self.after(360 * MICROSECOND, lambda: self._started(HFCLKSTAT, 1, HFCLKSTARTED))
        elif offset == HFCLKSTOP:
            self.registers[HFCLKRUN] = self.registers[HFCLKSTAT] = 0
        elif offset == LFCLKSTART:
            source = self.registers.get(LFCLKSRC, 0) & 3
            self.registers[LFCLKRUN] = 1
            wait = 250 * MILLISECOND if source == 1 else 600 * MICROSECOND
            self.after(wait, lambda: self._started(LFCLKSTAT, source, LFCLKSTARTED))
        elif offset == LFCLKSTOP:
            self.registers[LFCLKRUN] = self.registers[LFCLKSTAT] = 0

    def _started(self, status: int, source: int, event: int) -> None:
        self.registers[status] = RUNNING | source
        self.event(event)

    def get(self, offset: int) -> int:
        if offset == RESETREAS:
            return self.reasons
        if offset in (GPREGRET, GPREGRET2):
            return self.retained.get(offset, 0)
        if offset == USBREGSTATUS:
            return 0
        return super().get(offset)

    def set(self, offset: int, value: int) -> None:
        if offset == RESETREAS:
            self.reasons &= ~value
        elif offset in (GPREGRET, GPREGRET2):
            self.retained = {**self.retained, offset: value & 0xFF}
        elif offset == SYSTEMOFF and value & 1:
            self.machine.report("system off")
            self.machine.quit()
        else:
            super().set(offset, value)
            if offset == POFCON:
                self._compare_supply()

    def supply(self, low: bool) -> None:
        """The supply falls below the comparator's threshold, or recovers."""
        self.supply_low = low
        self._compare_supply()

    def flash_is_blocked(self) -> bool:
        """While the comparator warns nothing is written: cells programmed by a failing supply cannot be relied on, so the model
        shows firmware that tries that it must not."""
        return self.supply_low and bool(self.registers.get(POFCON, 0) & 1)

    def _compare_supply(self) -> None:
        if self.flash_is_blocked():
            self.event(POFWARN)
