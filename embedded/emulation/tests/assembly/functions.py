"""Calls the functions in assembly of a linked image, on Unicorn's Cortex-M4, and compares what they do with what they stand for.

    python functions.py IMAGE [FUNCTION...]

The functions named must be there, beside those that every image has. Exit status 0 if all agree; else it says which does not.
"""

import hashlib
import struct
import sys
from random import Random

from elftools.elf.elffile import ELFFile
from unicorn import UC_ARCH_ARM, UC_HOOK_CODE, UC_MODE_MCLASS, UC_MODE_THUMB, Uc
from unicorn import arm_const as arm

FLASH, RAM, SIZE, STACK = 0, 0x2000_0000, 0x1_0000, 0x2000_1000
AREA, BACK = RAM + 0x2000, 0xF_FFFE
ARGUMENTS = [getattr(arm, f"UC_ARM_REG_R{n}") for n in range(4)]
KEPT = [getattr(arm, f"UC_ARM_REG_R{n}") for n in range(4, 12)]
START = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
# The prime of the field that BLS12-381 is defined over.
BLS12_381 = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB


class Image:
    """Code of an image, and memory to call its functions with."""

    def __init__(self, path: str):
        self.uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(arm.UC_CPU_ARM_CORTEX_M4)
        self.uc.mem_map(FLASH, 0x10_0000)
        self.uc.mem_map(RAM, SIZE)
        with open(path, "rb") as file:
            elf = ELFFile(file)
            for segment in elf.iter_segments("PT_LOAD"):
                if segment["p_paddr"] < 0x10_0000:
                    self.uc.mem_write(segment["p_paddr"], segment.data())
            self.functions = {s.name: s["st_value"] for s in elf.get_section_by_name(".symtab").iter_symbols()}

    def call(self, name: str, *arguments: int, writes: range) -> int:
        """Calls a function; it must keep what a callee keeps, and write nowhere but there and below its stack."""
        before = self.uc.mem_read(RAM, SIZE)
        for register, value in zip(ARGUMENTS, arguments, strict=False):
            self.uc.reg_write(register, value)
        for register in KEPT:
            self.uc.reg_write(register, 0x5A5A_0000 + register)
        self.uc.reg_write(arm.UC_ARM_REG_SP, STACK)
        self.uc.reg_write(arm.UC_ARM_REG_LR, BACK | 1)
        self.uc.emu_start(self.functions[name] | 1, BACK)
        assert all(self.uc.reg_read(register) == 0x5A5A_0000 + register for register in KEPT), f"{name}: registers"
        assert self.uc.reg_read(arm.UC_ARM_REG_SP) == STACK, f"{name}: stack"
        after = self.uc.mem_read(RAM, SIZE)
        for part in (writes, range(STACK - 0x400, STACK)):
            start, stop = part.start - RAM, part.stop - RAM
            before[start:stop] = after[start:stop]
        assert before == after, f"{name}{arguments} writes elsewhere"
        return self.uc.reg_read(arm.UC_ARM_REG_R0)


def lengths(chance: Random):
    """All short ones, and some others."""
    return [*range(72), *(chance.randrange(72, 700) for _ in range(40))]


def hashes(image: Image, chance: Random) -> None:
    """SHA-256 of messages of all lengths around one, two and three blocks; nothing of them stays on the stack.

    Of three of them interrupts push their frames below the stack pointer at every instruction.
    """

    def interrupt(uc: Uc, *_: object) -> None:
        uc.mem_write(uc.reg_read(arm.UC_ARM_REG_SP) - 0x60, chance.randbytes(0x60))

    undisturbed = [(length, False) for length in [*range(200), 1000]]
    for length, interrupted in [*undisturbed, (0, True), (130, True), (300, True)]:
        message = chance.randbytes(length)
        padded = message + b"\x80" + bytes((55 - length) % 64) + struct.pack(">Q", 8 * length)
        state, blocks = AREA, AREA + 0x100 + chance.randrange(4)
        image.uc.mem_write(state, struct.pack("<8I", *START))
        image.uc.mem_write(blocks, padded)
        image.uc.mem_write(STACK - 0x400, bytes(0x400))
        hooks = [image.uc.hook_add(UC_HOOK_CODE, interrupt)] if interrupted else []
        # What was translated without the hook does not call it.
        image.uc.ctl_flush_tb()
        image.call("quiver_sha256_compress", state, blocks, len(padded) // 64, writes=range(state, state + 32))
        for hook in hooks:
            image.uc.hook_del(hook)
        digest = struct.pack(">8I", *struct.unpack("<8I", image.uc.mem_read(state, 32)))
        assert digest == hashlib.sha256(message).digest(), f"SHA-256 of {length} bytes"
        left = struct.unpack("<256I", image.uc.mem_read(STACK - 0x400, 0x400))
        words = struct.unpack(f">{len(padded) // 4}I", padded)
        assert not {word for word in words if word >= 0x1_0000} & set(left), f"SHA-256 of {length} bytes leaves them behind"


def erasures(image: Image, chance: Random) -> None:
    """Zeros over all bytes, at every alignment, and over no other."""
    for length in lengths(chance):
        at = AREA + chance.randrange(4)
        image.uc.mem_write(AREA, chance.randbytes(0x400))
        image.call("quiver_erase", at, length, writes=range(at, at + length))
        assert not any(image.uc.mem_read(at, length)), f"quiver_erase of {length} bytes"


def products(image: Image, chance: Random) -> None:
    """Montgomery's product of random elements, and of those whose limbs are all zeros or all ones; from places that overlap nothing."""
    one, two, out, modulus = (AREA + 0x40 * n for n in range(4))
    image.uc.mem_write(modulus, BLS12_381.to_bytes(48, "little"))
    extreme = [0, 1, BLS12_381 - 1, (1 << 380) - 1, (1 << 32) - 1, BLS12_381 - (1 << 32), (1 << 384) % BLS12_381]
    pairs = [(a, b) for a in extreme for b in extreme]
    pairs += [(chance.randrange(BLS12_381), chance.randrange(BLS12_381)) for _ in range(500)]
    back = pow(1 << 384, -1, BLS12_381)
    for a, b in pairs:
        image.uc.mem_write(one, a.to_bytes(48, "little"))
        image.uc.mem_write(two, b.to_bytes(48, "little"))
        image.call("quiver_fp_multiply", out, one, two, modulus, writes=range(out, out + 48))
        product = int.from_bytes(image.uc.mem_read(out, 48), "little")
        assert product == a * b * back % BLS12_381, f"{a:#x} times {b:#x}: {product:#x}"


def main() -> None:
    """All of it, of the image that the command line names."""
    image, chance = Image(sys.argv[1]), Random(7)
    for name in ("quiver_sha256_compress", "quiver_erase", *sys.argv[2:]):
        assert name in image.functions, f"the image has no {name}"
    hashes(image, chance)
    erasures(image, chance)
    if "quiver_fp_multiply" in image.functions:
        products(image, chance)


main()
