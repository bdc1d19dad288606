"""PPI (PS 6.16): an event of one peripheral triggers tasks of others, without the processor.

The 20 programmable channels with their forks and the six channel groups; the fixed channels are not used.
"""

from __future__ import annotations

from .base import Peripheral

CHEN, CHENSET, CHENCLR = 0x500, 0x504, 0x508
CH, CHG, FORK = 0x510, 0x800, 0x910
CHANNELS, GROUPS = 20, 6


class Ppi(Peripheral):
    """PPI at 0x4001F000. Tasks: CHG[n].EN at 8·n, CHG[n].DIS at 8·n + 4."""

    def clear(self) -> None:
        super().clear()
        self.enabled = 0
        self._routes: dict[int, list[int]] = {}

    def route(self, event: int) -> None:
        """The event at address `event` occurred: triggers the tasks of the enabled channels that listen to it."""
        for channel in self._routes.get(event, ()):
            if self.enabled >> channel & 1:
                for register in (CH + 8 * channel + 4, FORK + 4 * channel):
                    task = self.registers.get(register, 0)
                    if task:
                        self.machine.bus.task(task)

    def task(self, offset: int) -> None:
        members = self.registers.get(CHG + 4 * (offset // 8), 0)
        if offset // 8 < GROUPS:
            self.enabled = self.enabled & ~members if offset % 8 else self.enabled | members

    def get(self, offset: int) -> int:
        return self.enabled if offset in (CHEN, CHENSET, CHENCLR) else super().get(offset)

    def set(self, offset: int, value: int) -> None:
        if offset == CHEN:
            self.enabled = value
        elif offset == CHENSET:
            self.enabled |= value
        elif offset == CHENCLR:
            self.enabled &= ~value
        else:
            super().set(offset, value)
            if CH <= offset < CH + 8 * CHANNELS:
                self._index()

    def _index(self) -> None:
        self._routes = {}
        for channel in range(CHANNELS):
            event = self.registers.get(CH + 8 * channel, 0)
            if event:
                self._routes.setdefault(event, []).append(channel)
