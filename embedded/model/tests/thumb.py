"""A small assembler for the tests' programs: Thumb-2 encodings as in the ARMv7-M Architecture Reference Manual, A7.7."""

import struct

from nrf52840_model.image import Image
from nrf52840_model.machine import Machine

STACK = 0x2000_8000
VECTORS = 64


class Program:
    """Instructions in order; `main` is where they begin, and `vector` puts a label's address into the vector table."""

    def __init__(self):
        self._code = bytearray()
        self._labels: dict[str, int] = {}
        self._branches: list[tuple[int, str, int | None]] = []
        self._vectors: dict[int, str] = {1: "main"}

    def label(self, name: str) -> "Program":
        """Names the next instruction."""
        self._labels[name] = 4 * VECTORS + len(self._code)
        return self

    def vector(self, exception: int, name: str) -> "Program":
        """The handler of an exception."""
        self._vectors[exception] = name
        return self

    def raw(self, *halfwords: int) -> "Program":
        """Instructions by their encoding."""
        for halfword in halfwords:
            self._code += struct.pack("<H", halfword)
        return self

    def load(self, register: int, value: int) -> "Program":
        """MOVW and MOVT: a 32-bit constant."""
        for opcode, half in ((0xF240, value & 0xFFFF), (0xF2C0, value >> 16)):
            self.raw(
                opcode | (half >> 11 & 1) << 10 | half >> 12,
                (half >> 8 & 7) << 12 | register << 8 | half & 0xFF,
            )
        return self

    def store(self, value: int, address: int) -> "Program":
        """Stores a constant at an address, by r0 and r1."""
        return self.load(0, address).load(1, value).raw(0x6001)

    def read(self, register: int, address: int) -> "Program":
        """Loads the word at an address into r0 … r7, by r0."""
        return self.load(0, address).raw(0x6800 | register)

    def increment(self, address: int) -> "Program":
        """Adds 1 to a word in memory, by r0 and r1."""
        return self.load(0, address).raw(0x6801, 0x3101, 0x6001)

    def branch(self, name: str, condition: int | None = None) -> "Program":
        """B, or B with a condition (0 EQ, 1 NE)."""
        self._branches.append((len(self._code), name, condition))
        return self.raw(0)

    def wfe(self) -> "Program":
        """WFE."""
        return self.raw(0xBF20)

    def wfi(self) -> "Program":
        """WFI."""
        return self.raw(0xBF30)

    def sev(self) -> "Program":
        """SEV."""
        return self.raw(0xBF40)

    def mask(self) -> "Program":
        """CPSID i."""
        return self.raw(0xB672)

    def unmask(self) -> "Program":
        """CPSIE i."""
        return self.raw(0xB662)

    def done(self) -> "Program":
        """BX LR."""
        return self.raw(0x4770)

    def bytes(self) -> bytes:
        """Vector table and code."""
        for at, name, condition in self._branches:
            offset = self._labels[name] - (4 * VECTORS + at + 4) >> 1
            opcode = 0xE000 | offset & 0x7FF if condition is None else 0xD000 | condition << 8 | offset & 0xFF
            struct.pack_into("<H", self._code, at, opcode)
        table = [STACK] + [self._labels.get(self._vectors.get(n, "main"), 0) | 1 for n in range(1, VECTORS)]
        return struct.pack(f"<{VECTORS}I", *table) + bytes(self._code)

    def machine(self, **options) -> Machine:
        """A chip that has this program at 0."""
        return Machine(Image([(0, self.bytes())]), **options)

    def elf(self) -> bytes:
        """The program as an ELF file with one loadable segment."""
        code = self.bytes()
        header = b"\x7fELF\x01\x01\x01" + bytes(9)
        header += struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 4 * VECTORS | 1, 52, 0, 0x0500_0000, 52, 32, 1, 40, 0, 0)
        return header + struct.pack("<8I", 1, 84, 0, 0, len(code), len(code), 5, 4) + code


def word(machine: Machine, address: int) -> int:
    """A word of the chip's memory."""
    return struct.unpack("<I", machine.cpu.uc.mem_read(address, 4))[0]
