"""The memories that instructions and EasyDMA reach: flash, FICR, UICR, RAM."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

from unicorn import UC_HOOK_MEM_WRITE, Uc

from .flash import CELLS, FLASH_SIZE, PAGE, UICR_BASE, Array, Storage
from .peripherals.nvmc import WORD_TIME

if TYPE_CHECKING:
    from .machine import Machine

RAM_BASE, RAM_SIZE = 0x2000_0000, 256 << 10
FICR_BASE = 0x1000_0000


class Memory:
    """Unicorn's memory, with stores to flash turned into programming."""

    def __init__(self, machine: Machine, uc: Uc, storage: Storage, seed: int):
        self.machine, self._uc = machine, uc
        self.flash, self.uicr = storage.flash, storage.uicr
        self.supply = storage.supply
        self._stores: list[tuple[int, int, int]] = []
        uc.mem_map(0, FLASH_SIZE)
        uc.mem_map(FICR_BASE, 2 * PAGE)
        uc.mem_map(RAM_BASE, RAM_SIZE)
        self._seed = seed
        self._write_ficr()
        for array in (self.flash, self.uicr):
            uc.mem_write(array.base, bytes(array.cells))
            uc.hook_add(UC_HOOK_MEM_WRITE, self._store, begin=array.base, end=array.base + array.size - 1)

    def power_up(self) -> None:
        """RAM comes up with anything in it."""
        self._uc.mem_write(RAM_BASE, random.Random(f"ram {self._seed}").randbytes(RAM_SIZE))

    def install(self, segments: list[tuple[int, bytes]]) -> None:
        """Puts the image's segments (address, bytes) into flash."""
        for address, data in segments:
            self.flash.install(address, data)
            self._uc.mem_write(address, data)

    def _write_ficr(self) -> None:
        """Factory information (PS 4.4): sizes, part, and a device ID and address drawn from the seed."""
        chance = random.Random(f"ficr {self._seed}")
        ficr = bytearray(b"\xff" * PAGE)
        struct.pack_into("<2I", ficr, 0x10, PAGE, FLASH_SIZE // PAGE)
        struct.pack_into("<2I", ficr, 0x60, chance.getrandbits(32), chance.getrandbits(32))
        struct.pack_into("<3I", ficr, 0xA0, 1, chance.getrandbits(32), chance.getrandbits(16))
        struct.pack_into("<5I", ficr, 0x100, 0x52840, 0x41414430, 0x2004, RAM_SIZE >> 10, FLASH_SIZE >> 10)
        self._uc.mem_write(FICR_BASE, bytes(ficr))

    # EasyDMA, which reaches RAM only (PS 6.1 "EasyDMA").

    def read(self, address: int, size: int) -> bytes:
        """What a peripheral reads by EasyDMA."""
        self._check(address, size)
        return bytes(self._uc.mem_read(address, size)) if size else b""

    def write(self, address: int, data: bytes) -> None:
        """What a peripheral writes by EasyDMA."""
        self._check(address, len(data))
        self._uc.mem_write(address, data)

    def _check(self, address: int, size: int) -> None:
        if size and not RAM_BASE <= address <= address + size <= RAM_BASE + RAM_SIZE:
            self.machine.fail(f"EasyDMA of {size} bytes at 0x{address:08x}, outside RAM")

    # Stores to flash.

    def _array(self, address: int) -> Array:
        return self.uicr if address >= UICR_BASE else self.flash

    def _store(self, _uc: Uc, _access: int, address: int, size: int, value: int, _data: object) -> None:
        """A store is about to reach flash: Unicorn will put the raw value there, and `settle` what the cells make of it."""
        if not self.machine.nvmc.may_write:
            self.machine.fail(f"store to flash at 0x{address:08x} while NVMC.CONFIG does not allow it")
        if size != 4 or address % 4:
            self.machine.fail(f"store of {size} bytes to flash at 0x{address:08x}: only aligned words can be written")
        self._stores.append((address, self._array(address).word(address), value & 0xFFFF_FFFF))
        self.machine.schedule.look_up()

    def settle(self) -> None:
        """Programs the words that were stored since the last call."""
        stores, self._stores = self._stores, []
        for address, old, value in stores:
            if self.machine.power.flash_is_blocked():
                new = old
                self.machine.report(f"write refused 0x{address:08x}: supply low")
            else:
                self.machine.schedule.now += WORD_TIME
                new = self._array(address).program(address, value)
            self._uc.mem_write(address, new.to_bytes(4, "little"))

    def erase(self, address: int, size: int) -> None:
        """Erases `size` bytes at `address`."""
        array = self._array(address)
        if not array.base <= address <= address + size <= array.base + array.size:
            self.machine.fail(f"erase of 0x{address:08x}, outside flash")
        array.erase(address, size)
        self._uc.mem_write(address, b"\xff" * size)


__all__ = ["CELLS", "FICR_BASE", "Memory", "RAM_BASE", "RAM_SIZE"]
