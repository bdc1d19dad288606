"""Peripheral registers by address: pages of 4 KiB, one peripheral each."""

import sys
from typing import Protocol


class Registers(Protocol):
    """What answers on a page of the bus."""

    def read(self, offset: int) -> int:
        """The 32-bit register at `offset` (bytes)."""

    def write(self, offset: int, value: int) -> None:
        """Stores a 32-bit value."""

    def task(self, offset: int) -> None:
        """Triggers the task at `offset`, as the PPI does."""


class Unmodelled:
    """A page nobody models: it remembers what is written, and its first use is reported."""

    def __init__(self, base: int):
        self.base = base
        self._values: dict[int, int] = {}
        print(f"[model] 0x{base:08x} is not modelled; it only remembers", file=sys.stderr)

    def read(self, offset: int) -> int:
        """What was written there, or 0."""
        return self._values.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Remembers `value`."""
        self._values[offset] = value

    def task(self, offset: int) -> None:
        """Does nothing."""


class Bus:
    """Finds the peripheral behind an address."""

    def __init__(self) -> None:
        self._pages: dict[int, Registers] = {}

    def attach(self, base: int, peripheral: Registers) -> None:
        """Puts `peripheral` on the page that begins at `base`."""
        self._pages[base >> 12] = peripheral

    def page(self, address: int) -> Registers:
        """The peripheral at `address`; unknown ones come into being when first touched."""
        peripheral = self._pages.get(address >> 12)
        if peripheral is None:
            peripheral = self._pages[address >> 12] = Unmodelled(address & ~0xFFF)
        return peripheral

    def read(self, address: int) -> int:
        """The register at `address`."""
        return self.page(address).read(address & 0xFFF)

    def write(self, address: int, value: int) -> None:
        """Stores `value` in the register at `address`."""
        self.page(address).write(address & 0xFFF, value & 0xFFFF_FFFF)

    def task(self, address: int) -> None:
        """Triggers the task at `address`."""
        self.page(address).task(address & 0xFFF)
