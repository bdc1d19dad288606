"""RTC0 … RTC2 (PS 6.22): 24-bit counters of the 32,768 Hz clock; embassy keeps time with RTC1.

An event comes into being only if INTEN or EVTEN asks for it, and reaches the PPI only through EVTEN. A compare register
that is written with the counter's value or the one after does not match before the counter has gone round: PS leaves
that open ("may not trigger"), and firmware that relies on it would be wrong.
"""

from __future__ import annotations

from ..schedule import from_lfclk, to_lfclk
from .base import Peripheral

START, STOP, CLEAR, TRIGOVRFLW = 0x000, 0x004, 0x008, 0x00C
TICK, OVRFLW, COMPARE = 0x100, 0x104, 0x140
EVTEN, EVTENSET, EVTENCLR = 0x340, 0x344, 0x348
COUNTER, PRESCALER, CC = 0x504, 0x508, 0x540
WRAP = 1 << 24


class Rtc(Peripheral):
    """A real-time counter with `channels` compare registers."""

    def __init__(self, machine, base: int, channels: int):
        self.channels = channels
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self.running = False
        self.evten = 0
        self._count = 0
        self._since = 0
        self._alarms: dict[int, object] = {}

    @property
    def _divider(self) -> int:
        return (self.registers.get(PRESCALER, 0) & 0xFFF) + 1

    def count(self) -> int:
        """Ticks since the counter was cleared, beyond 24 bits."""
        if not self.running:
            return self._count
        return self._count + to_lfclk(self.schedule.now - self._since) // self._divider

    def _time_of(self, count: int) -> int:
        return self._since + from_lfclk((count - self._count) * self._divider)

    def task(self, offset: int) -> None:
        count = self.count()
        if offset == START and not self.running:
            self.running, self._since = True, self.schedule.now
        elif offset == STOP:
            self._count, self.running = count, False
        elif offset == CLEAR:
            self._count, self._since = 0, self.schedule.now
        elif offset == TRIGOVRFLW:
            self._count, self._since = WRAP - 16, self.schedule.now
        self._arm()

    def get(self, offset: int) -> int:
        if offset == COUNTER:
            return self.count() % WRAP
        if offset in (EVTEN, EVTENSET, EVTENCLR):
            return self.evten
        return super().get(offset)

    def set(self, offset: int, value: int) -> None:
        if offset == EVTEN:
            self.evten = value
        elif offset == EVTENSET:
            self.evten |= value
        elif offset == EVTENCLR:
            self.evten &= ~value
        else:
            super().set(offset, value & (WRAP - 1) if offset >= CC else value)
        if CC <= offset < CC + 4 * self.channels:
            self._arm_compare((offset - CC) // 4)
        elif offset in (EVTEN, EVTENSET):
            self._arm()

    def enable_interrupts(self, offset: int, value: int) -> None:
        before = self.inten
        super().enable_interrupts(offset, value)
        if (before ^ self.inten) & 3:
            self._arm_periodic()

    def _wanted(self, event: int) -> bool:
        return bool((self.inten | self.evten) >> ((event - 0x100) >> 2) & 1)

    def _occur(self, event: int) -> None:
        if self._wanted(event):
            self.event(event)

    def event(self, offset: int) -> None:
        self.events.add(offset)
        self.update_interrupt()
        if self.evten >> ((offset - 0x100) >> 2) & 1:
            self.machine.ppi.route(self.base + offset)

    def _arm(self) -> None:
        for channel in range(self.channels):
            self._arm_compare(channel)
        self._arm_periodic()

    def _arm_periodic(self) -> None:
        self._set_alarm(OVRFLW, (self.count() // WRAP + 1) * WRAP)
        if self._wanted(TICK):
            self._set_alarm(TICK, self.count() + 1)

    def _arm_compare(self, channel: int) -> None:
        value = self.registers.get(CC + 4 * channel)
        if value is None:
            return
        count = self.count()
        ahead = (value - count) % WRAP
        self._set_alarm(COMPARE + 4 * channel, count + (ahead if ahead > 1 else ahead + WRAP))

    def _set_alarm(self, event: int, count: int) -> None:
        alarm = self._alarms.pop(event, None)
        if alarm is not None:
            alarm.cancel()
        if self.running:
            self._alarms[event] = self.at(self._time_of(count), lambda: self._due(event, count))

    def _due(self, event: int, count: int) -> None:
        del self._alarms[event]
        self._occur(event)
        if event == TICK:
            if self._wanted(TICK):
                self._set_alarm(TICK, count + 1)
        else:
            self._set_alarm(event, count + WRAP)
