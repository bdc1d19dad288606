"""TIMER0 … TIMER4 (PS 6.30): timer mode at 16 MHz / 2^PRESCALER, and counter mode, which the buffered UART uses.

A compare event occurs when the counter reaches CC[n]; SHORTS bits 0–5 clear, bits 8–13 stop the timer then.
"""

from __future__ import annotations

from .base import Peripheral

START, STOP, COUNT, CLEAR, SHUTDOWN, CAPTURE = 0x000, 0x004, 0x008, 0x00C, 0x010, 0x040
COMPARE, MODE, BITMODE, PRESCALER, CC = 0x140, 0x504, 0x508, 0x510, 0x540
WIDTHS = {0: 16, 1: 8, 2: 24, 3: 32}


class Timer(Peripheral):
    """A timer with `channels` compare registers."""

    def __init__(self, machine, base: int, channels: int):
        self.channels = channels
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self.running = False
        self._count = 0
        self._since = 0
        self._alarms: list = []

    @property
    def counting(self) -> bool:
        """Counter mode, or the older low-power counter mode."""
        return self.registers.get(MODE, 0) != 0

    @property
    def _mask(self) -> int:
        return (1 << WIDTHS[self.registers.get(BITMODE, 0) & 3]) - 1

    @property
    def _cycles_per_tick(self) -> int:
        return 4 << min(self.registers.get(PRESCALER, 4) & 0xF, 9)

    def value(self) -> int:
        """What the counter stands at."""
        if self.running and not self.counting:
            return self._count + (self.schedule.now - self._since) // self._cycles_per_tick & self._mask
        return self._count

    def _hold(self) -> None:
        """Takes the elapsed ticks into the count, keeping the fraction of a tick."""
        if self.running and not self.counting:
            ticks = (self.schedule.now - self._since) // self._cycles_per_tick
            self._count = self._count + ticks & self._mask
            self._since += ticks * self._cycles_per_tick

    def task(self, offset: int) -> None:
        if offset == START:
            if not self.running:
                self.running, self._since = True, self.schedule.now
        elif offset in (STOP, SHUTDOWN):
            self._hold()
            self.running = False
        elif offset == CLEAR:
            self._count, self._since = 0, self.schedule.now
        elif offset == COUNT and self.counting and self.running:
            self._count = self._count + 1 & self._mask
            self._compare(self._count)
        elif CAPTURE <= offset < CAPTURE + 4 * self.channels:
            self.registers[CC + offset - CAPTURE] = self.value()
        self._arm()

    def get(self, offset: int) -> int:
        return super().get(offset) if offset != PRESCALER else self.registers.get(PRESCALER, 4)

    def set(self, offset: int, value: int) -> None:
        self._hold()
        super().set(offset, value)
        self._arm()

    def _compare(self, count: int) -> None:
        for channel in range(self.channels):
            if self.registers.get(CC + 4 * channel) == count:
                if self.shorts >> channel & 1:
                    self._count, self._since = 0, self.schedule.now
                if self.shorts >> 8 + channel & 1:
                    self.running = False
                self.event(COMPARE + 4 * channel)

    def _arm(self) -> None:
        for alarm in self._alarms:
            alarm.cancel()
        self._alarms = []
        if not self.running or self.counting:
            return
        values = {self.registers[CC + 4 * n] for n in range(self.channels) if CC + 4 * n in self.registers}
        for value in values:
            ticks = (value - self._count - 1 & self._mask) + 1
            due = self._since + ticks * self._cycles_per_tick
            if due <= self.schedule.now:
                due += (self._mask + 1) * self._cycles_per_tick
            self._alarms.append(self.at(due, lambda value=value: self._due(value)))

    def _due(self, value: int) -> None:
        self._hold()
        self._compare(value)
        self._arm()
