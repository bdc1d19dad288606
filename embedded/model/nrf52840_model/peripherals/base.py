"""What all peripherals of the nRF52 series have in common (PS 6.1 "Peripheral interface").

    0x000 … 0x0FC   tasks: writing 1 triggers
    0x100 … 0x1FC   events: 1 once the event has occurred, written 0 by the firmware
    0x200           SHORTS: event → task within the peripheral
    0x300/304/308   INTEN, INTENSET, INTENCLR: bit n is the event at 0x100 + 4·n
    0x400 …         everything else

An event with its INTEN bit set holds the peripheral's interrupt line high.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..machine import Machine

SHORTS, INTEN, INTENSET, INTENCLR = 0x200, 0x300, 0x304, 0x308


class Peripheral:
    """A peripheral: subclasses say what tasks do, and which registers are more than memory.

    `SHORTCUTS` maps a bit of SHORTS to the offsets of its event and its task.
    """

    SHORTCUTS: dict[int, tuple[int, int]] = {}

    def __init__(self, machine: Machine, base: int):
        self.machine = machine
        self.schedule = machine.schedule
        self.base = base
        # The interrupt number is the peripheral's ID, bits 12 to 17 of its address (PS 6.1).
        self.irq = (base >> 12) & 0x3F
        self.clear()
        machine.bus.attach(base, self)

    def clear(self) -> None:
        """Every register as after a reset; subclasses clear their own state in `reset`."""
        self.registers: dict[int, int] = {}
        self.events: set[int] = set()
        self.inten = 0
        self.shorts = 0

    def reset(self) -> None:
        """A reset of the chip reaches this peripheral."""
        self.clear()
        self.update_interrupt()

    # What the firmware and the PPI do.

    def read(self, offset: int) -> int:
        """A register as the firmware reads it."""
        if 0x100 <= offset < 0x200:
            if offset in self.events:
                return 1
            self.schedule.polled(self.base + offset)
            return 0
        if offset in (INTEN, INTENSET, INTENCLR):
            return self.inten
        if offset == SHORTS:
            return self.shorts
        return self.get(offset)

    def write(self, offset: int, value: int) -> None:
        """A register as the firmware writes it."""
        if offset < 0x100:
            if value & 1:
                self.task(offset)
        elif offset < 0x200:
            if not value & 1:
                self.events.discard(offset)
                self.update_interrupt()
        elif offset == SHORTS:
            self.shorts = value
        elif offset in (INTEN, INTENSET, INTENCLR):
            self.enable_interrupts(offset, value)
        else:
            self.set(offset, value)

    def enable_interrupts(self, offset: int, value: int) -> None:
        """INTEN and its set and clear registers."""
        if offset == INTEN:
            self.inten = value
        elif offset == INTENSET:
            self.inten |= value
        else:
            self.inten &= ~value
        self.update_interrupt()

    # What subclasses say.

    def task(self, offset: int) -> None:
        """The task at `offset` is triggered."""

    def get(self, offset: int) -> int:
        """A register that is neither task nor event."""
        return self.registers.get(offset, 0)

    def set(self, offset: int, value: int) -> None:
        """A register that is neither task nor event."""
        self.registers[offset] = value

    # What happens in the peripheral.

    def event(self, offset: int) -> None:
        """The event at `offset` occurs: remembered, routed by the PPI and the shortcuts, and perhaps interrupting."""
        self.events.add(offset)
        self.update_interrupt()
        self.machine.ppi.route(self.base + offset)
        if self.shorts:
            for bit, (event, task) in self.SHORTCUTS.items():
                if event == offset and self.shorts >> bit & 1:
                    self.task(task)

    def update_interrupt(self) -> None:
        """The interrupt line follows the events and INTEN."""
        high = any(self.inten >> ((offset - 0x100) >> 2) & 1 for offset in self.events)
        self.machine.scs.line(self.irq, high)

    def at(self, time: int, action: Callable[[], None]):
        """Schedules what the peripheral does later, forgotten if the chip is reset before."""
        generation = self.machine.generation

        def unless_reset() -> None:
            if self.machine.generation == generation:
                action()

        return self.schedule.at(time, unless_reset)

    def after(self, cycles: int, action: Callable[[], None]):
        """As `at`, in `cycles` from now."""
        return self.at(self.schedule.now + cycles, action)
