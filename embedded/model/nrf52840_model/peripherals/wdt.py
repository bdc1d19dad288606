"""WDT (PS 6.36): once started it runs until a reset that reaches it, and resets the chip when it is not fed.

It is not stopped by a reset that the firmware asks for, nor by a lock-up. Every reload register that RREN enables must be written
with the magic value within CRV + 1 ticks; two ticks after TIMEOUT the chip is reset.
"""

from __future__ import annotations

from ..schedule import from_lfclk
from .base import Peripheral

START = 0x000
TIMEOUT = 0x100
RUNSTATUS, REQSTATUS, CRV, RREN, CONFIG, RR = 0x400, 0x404, 0x504, 0x508, 0x50C, 0x600
RELOAD = 0x6E52_4635


class Wdt(Peripheral):
    """WDT at 0x40010000, interrupt 16."""

    def __init__(self, machine, base: int):
        # How often it was fed in all, and the longest that it was not while it ran, in cycles.
        self.feeds = self.longest = 0
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self.registers = {CRV: 0xFFFF_FFFF, RREN: 1, CONFIG: 1}
        self.running = False
        self._requests = 0
        self._alarm = None

    def reset_by(self, reason: str) -> None:
        """A reset that leaves the watchdog running, or one that does not."""
        if self.running and reason in ("soft", "lockup"):
            self.events.clear()
            self.inten = 0
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self.reset()

    def task(self, offset: int) -> None:
        if offset == START and not self.running:
            self.running = True
            self._reload()

    def get(self, offset: int) -> int:
        if offset == RUNSTATUS:
            return int(self.running)
        if offset == REQSTATUS:
            return self._requests
        return super().get(offset)

    def set(self, offset: int, value: int) -> None:
        if RR <= offset < RR + 32:
            if self.running and value == RELOAD:
                self._requests &= ~(1 << (offset - RR) // 4)
                if not self._requests:
                    self.feeds += 1
                    self.longest = max(self.longest, self.schedule.now - self._since)
                    self._reload()
        elif not self.running:
            super().set(offset, value)

    def _reload(self) -> None:
        """The counter starts again, and every enabled register has to be written again."""
        self._requests = self.registers[RREN] & 0xFF
        self._since = self.schedule.now
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self.schedule.after(from_lfclk(self.registers[CRV] + 1), self._timeout)

    def _timeout(self) -> None:
        self.event(TIMEOUT)
        self._alarm = self.schedule.after(from_lfclk(2), lambda: self.machine.request_reset("watchdog"))
