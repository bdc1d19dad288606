"""GPIO ports P0 and P1 (PS 6.9): levels, latches, and the DETECT signal that GPIOTE listens to.

Both ports share the page at 0x50000000; P1 begins at 0x300. A pin that nobody drives from outside reads as its pull
resistor says.
"""

from __future__ import annotations

from collections.abc import Callable

from .base import Peripheral

OUT, OUTSET, OUTCLR, IN, DIR, DIRSET, DIRCLR, LATCH, DETECTMODE = range(0x504, 0x528, 4)
PIN_CNF = 0x700
PULL_UP, SENSE_HIGH, SENSE_LOW = 3, 2, 3


class Port:
    """One port of 32 pins."""

    def __init__(self, changed: Callable[[int, bool, bool], None], detected: Callable[[], None]):
        self._changed, self._detected = changed, detected
        # Levels driven from outside: they survive resets of the chip.
        self.driven: dict[int, bool] = {}
        self.clear()

    def clear(self) -> None:
        """As after a reset."""
        self.out = self.direction = self.latch = self.detect_mode = 0
        self.configurations = [0x2] * 32
        self._configured()
        self._detect = False
        self._before = self.levels()

    def _configured(self) -> None:
        """What the pins' configurations say, pin by bit."""

        def those(shift: int, mask: int, value: int) -> int:
            return sum(1 << pin for pin, word in enumerate(self.configurations) if word >> shift & mask == value)

        self._pulled_up = those(2, 3, PULL_UP)
        self._sense_high, self._sense_low = those(16, 3, SENSE_HIGH), those(16, 3, SENSE_LOW)
        self._connected = those(1, 1, 0)

    def levels(self) -> int:
        """What each pin reads, or what it drives."""
        outside = self._pulled_up
        for pin, level in self.driven.items():
            outside = outside & ~(1 << pin) | level << pin
        return self.out & self.direction | outside & ~self.direction & 0xFFFF_FFFF

    def level(self, pin: int) -> bool:
        """What this pin reads, or what it drives."""
        return bool(self.levels() >> pin & 1)

    def settle(self) -> None:
        """Reports changed levels, latches what is sensed, and raises DETECT."""
        levels = self.levels()
        changed, self._before = levels ^ self._before, levels
        while changed:
            pin = (changed & -changed).bit_length() - 1
            changed &= changed - 1
            level = bool(levels >> pin & 1)
            self._changed(pin, not level, level)
        sensed = levels & self._sense_high | ~levels & self._sense_low
        self.latch |= sensed
        detect = self.latch != 0 if self.detect_mode & 1 else sensed != 0
        rising = detect and not self._detect
        self._detect = detect
        if rising:
            self._detected()

    def read(self, offset: int) -> int:
        """A register of the port."""
        if offset in (OUT, OUTSET, OUTCLR):
            return self.out
        if offset == IN:
            return self.levels() & self._connected
        if offset in (DIR, DIRSET, DIRCLR):
            return self.direction
        if offset == LATCH:
            return self.latch
        if offset == DETECTMODE:
            return self.detect_mode
        if PIN_CNF <= offset < PIN_CNF + 128:
            pin = (offset - PIN_CNF) // 4
            return self.configurations[pin] & ~1 | self.direction >> pin & 1
        return 0

    def write(self, offset: int, value: int) -> None:
        """A register of the port."""
        if offset in (OUT, OUTSET, OUTCLR):
            self.out = {OUT: value, OUTSET: self.out | value, OUTCLR: self.out & ~value}[offset]
        elif offset in (DIR, DIRSET, DIRCLR):
            self.direction = {DIR: value, DIRSET: self.direction | value, DIRCLR: self.direction & ~value}[offset]
        elif offset == LATCH:
            # Writing 1 clears; a pin that is still sensed latches again at once, with a new edge of LDETECT.
            self.latch &= ~value
            self._detect = False if self.detect_mode & 1 else self._detect
        elif offset == DETECTMODE:
            self.detect_mode = value
        elif PIN_CNF <= offset < PIN_CNF + 128:
            pin = (offset - PIN_CNF) // 4
            self.configurations[pin] = value
            self._configured()
            self.direction = self.direction & ~(1 << pin) | (value & 1) << pin
        self.settle()


class Gpio(Peripheral):
    """P0 and P1."""

    def __init__(self, machine, base: int):
        self.ports = [self._port(0), self._port(1)]
        super().__init__(machine, base)

    def _port(self, number: int) -> Port:
        return Port(
            lambda pin, before, level: self.machine.gpiote.edge(number, pin, before, level),
            lambda: self.machine.gpiote.port_event(),
        )

    def reset(self) -> None:
        for port in self.ports:
            port.clear()

    def read(self, offset: int) -> int:
        return self.ports[0].read(offset) if offset < 0x800 else self.ports[1].read(offset - 0x300)

    def write(self, offset: int, value: int) -> None:
        if offset < 0x800:
            self.ports[0].write(offset, value)
        else:
            self.ports[1].write(offset - 0x300, value)

    def drive(self, port: int, pin: int, level: bool | None) -> None:
        """Drives a pin from outside, or lets go of it."""
        driven = self.ports[port].driven
        driven.pop(pin, None)
        if level is not None:
            driven[pin] = level
        self.ports[port].settle()

    def drives_low(self, port: int, pin: int) -> bool:
        """Whether the chip draws current through what hangs between this pin and the supply."""
        return bool(self.ports[port].direction >> pin & 1) and not self.ports[port].level(pin)
