"""NVMC (PS 4.3): write enable, page erase, and the stores of the processor to flash and UICR.

A word takes 41 µs and a page 85 ms, during which the processor stands still, since it executes from the same flash. READY
therefore reads 1, unless a test lets the controller get stuck. What the cells do is in `flash`.
"""

from __future__ import annotations

from ..flash import PAGE
from ..schedule import MICROSECOND, MILLISECOND
from .base import Peripheral

READY, READYNEXT, WEN, ERASEPAGE, ERASEALL, ERASEPCR0, ERASEUICR = 0x400, 0x408, 0x504, 0x508, 0x50C, 0x510, 0x514
READ_ONLY, WRITE_ENABLED, ERASE_ENABLED = 0, 1, 2
WORD_TIME, PAGE_TIME, ALL_TIME = 41 * MICROSECOND, 85 * MILLISECOND, 169 * MILLISECOND


class Nvmc(Peripheral):
    """NVMC at 0x4001E000; it has no interrupt."""

    def clear(self) -> None:
        super().clear()
        # Whether it is busy until a reset: what a driver that waits for it never gets out of.
        self.stuck = False

    def get(self, offset: int) -> int:
        self.machine.memory.settle()
        if offset not in (READY, READYNEXT):
            return super().get(offset)
        if self.stuck:
            self.schedule.polled(self.base + offset)
        return int(not self.stuck)

    def set(self, offset: int, value: int) -> None:
        self.machine.memory.settle()
        super().set(offset, value)
        if offset in (ERASEPAGE, ERASEPCR0):
            self._erase(value & ~(PAGE - 1), PAGE, PAGE_TIME)
        elif offset == ERASEALL and value & 1:
            self._erase(0, self.machine.memory.flash.size, ALL_TIME)
        elif offset == ERASEUICR and value & 1:
            self._erase(self.machine.memory.uicr.base, PAGE, PAGE_TIME)

    @property
    def may_write(self) -> bool:
        """Whether a store to flash programs it."""
        return self.registers.get(WEN, 0) == WRITE_ENABLED

    def _erase(self, address: int, size: int, time: int) -> None:
        if self.registers.get(WEN, 0) != ERASE_ENABLED:
            self.machine.fail(f"erase of 0x{address:08x} while NVMC.CONFIG does not allow it")
        elif self.machine.power.flash_is_blocked():
            self.machine.report(f"erase refused 0x{address:08x}: supply low")
        else:
            self.schedule.now += time
            self.machine.memory.erase(address, size)
