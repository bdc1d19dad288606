"""GPIOTE (PS 6.10): events from pins. Channels in event mode, and the PORT event from the latched DETECT signal."""

from __future__ import annotations

from .base import Peripheral

PORT = 0x17C
CONFIG = 0x510
EVENT_MODE, LOW_TO_HIGH, HIGH_TO_LOW, TOGGLE = 1, 1, 2, 3


class Gpiote(Peripheral):
    """GPIOTE at 0x40006000, interrupt 6. INTEN bit n is channel n, bit 31 the PORT event."""

    def port_event(self) -> None:
        """DETECT rose on a port."""
        self.event(PORT)

    def edge(self, port: int, pin: int, before: bool, level: bool) -> None:
        """A pin changed: every channel that watches it may have its event."""
        for channel in range(8):
            config = self.registers.get(CONFIG + 4 * channel, 0)
            if config & 3 != EVENT_MODE or config >> 8 & 31 != pin or config >> 13 & 1 != port:
                continue
            polarity = config >> 16 & 3
            if polarity == TOGGLE or polarity == (LOW_TO_HIGH if level else HIGH_TO_LOW):
                self.event(0x100 + 4 * channel)

    def update_interrupt(self) -> None:
        high = any(self.inten >> (31 if offset == PORT else (offset - 0x100) >> 2) & 1 for offset in self.events)
        self.machine.scs.line(self.irq, high)
