"""The Cortex-M4F: Unicorn runs instructions, this module counts them and does what Unicorn leaves out for M profile:
exception entry and return (ARM ARM B1.5), sleeping, faults.

Cycles are counted per basic block in one hook: a block's instructions times `CYCLES_PER_INSTRUCTION`. A slice ends before
the block with which it would exceed `Schedule.stop_at`; blocks are never cut.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from unicorn import (
    UC_ARCH_ARM,
    UC_ERR_INSN_INVALID,
    UC_ERR_OK,
    UC_HOOK_BLOCK,
    UC_HOOK_CODE,
    UC_HOOK_INTR,
    UC_MODE_MCLASS,
    UC_MODE_THUMB,
    Uc,
    UcError,
)
from unicorn import arm_const as arm
from unicorn.unicorn_py3.unicorn import HOOK_CODE_CFUNC, uc_hook_h, uclib

from .scs import HARD_FAULT, SVCALL

if TYPE_CHECKING:
    from .machine import Machine

# Instructions of the firmware's arithmetic take about 30 ms per 1.5 million on the chip (flash wait states, multiplies of
# one cycle, loads of two): 1.35 cycles each.
CYCLES_PER_INSTRUCTION = Fraction(135, 100)
NEVER = 0xF000_0F00
SEV, WFE, WFI, CPSIE_I = b"\x40\xbf", b"\x20\xbf", b"\x30\xbf", b"\x62\xb6"
FOREVER, FOREVER_CYCLES = b"\xfe\xe7", 1000
EXCEPTION_RETURN, SOFTWARE_INTERRUPT, BREAKPOINT = 8, 2, 7
FRAME = [getattr(arm, f"UC_ARM_REG_{name}") for name in ("R0", "R1", "R2", "R3", "R12", "LR", "PC", "XPSR")]
FLOATS = [getattr(arm, f"UC_ARM_REG_{name}") for name in (*(f"S{n}" for n in range(16)), "FPSCR")]
MASKS = [arm.UC_ARM_REG_BASEPRI, arm.UC_ARM_REG_PRIMASK, arm.UC_ARM_REG_FAULTMASK]
CONTROL, FAULTMASK = arm.UC_ARM_REG_CONTROL, arm.UC_ARM_REG_FAULTMASK
SP, LR, PC, XPSR = arm.UC_ARM_REG_SP, arm.UC_ARM_REG_LR, arm.UC_ARM_REG_PC, arm.UC_ARM_REG_XPSR
FPCA, THUMB, ALIGNED = 4, 1 << 24, 1 << 9


class Bank:
    """Some registers of 32 bits, read or written in one call, which is several times as fast as one by one through `Uc`."""

    def __init__(self, uc: Uc, numbers: list[int]):
        self._uc = uc
        self._numbers = (ctypes.c_int * len(numbers))(*numbers)
        self._values = (ctypes.c_uint64 * len(numbers))()
        first, size = ctypes.addressof(self._values), ctypes.sizeof(ctypes.c_uint64)
        self._places = (ctypes.c_void_p * len(numbers))(*(first + size * n for n in range(len(numbers))))

    def read(self) -> list[int]:
        """Their values, in order."""
        self._done(uclib.uc_reg_read_batch(self._uc._uch, self._numbers, self._places, len(self._numbers)))
        return self._values[:]

    def write(self, values: Sequence[int]) -> None:
        """Sets them one after the other."""
        self._values[:] = values
        self._done(uclib.uc_reg_write_batch(self._uc._uch, self._numbers, self._places, len(self._numbers)))

    @staticmethod
    def _done(status: int) -> None:
        if status != UC_ERR_OK:
            raise UcError(status)


class Cpu:
    """The processor. `asleep` is set by WFE and WFI and cleared by whatever wakes it."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(arm.UC_CPU_ARM_CORTEX_M4)
        self.asleep = False
        self._event = False
        self._trap: int | None = None
        self._place, self._masks = Bank(self.uc, [PC]), Bank(self.uc, MASKS)
        self._before, self._floats = Bank(self.uc, [*FRAME, CONTROL, SP]), Bank(self.uc, FLOATS)
        self._entered = Bank(self.uc, [SP, LR, CONTROL, XPSR, PC])
        self._left = Bank(self.uc, [XPSR, *FRAME[:6], CONTROL, FAULTMASK, SP, PC])
        self._hooks: list[int] = []
        # `Uc.hook_add` wraps what it is given twice; with a call for every basic block that is most of the model's time.
        self._on_block = HOOK_CODE_CFUNC(self._block_hook())
        every, pointer = (ctypes.c_uint64(1), ctypes.c_uint64(0)), ctypes.cast(self._on_block, ctypes.c_void_p)
        status = uclib.uc_hook_add(self.uc._uch, ctypes.byref(uc_hook_h()), UC_HOOK_BLOCK, pointer, None, *every)
        if status != UC_ERR_OK:
            raise UcError(status)
        self.uc.hook_add(UC_HOOK_INTR, self._on_trap)

    # Counting.

    def _block_hook(self):
        schedule, costs, stop, read = self.machine.schedule, {}, self.uc.emu_stop, self.uc.mem_read

        def on_block(_engine: object, address: int, size: int, _data: object) -> None:
            if schedule.now >= schedule.stop_at:
                stop()  # The block is not executed; it is counted when the processor comes back to it.
                return
            key = address << 12 | size
            cost = costs.get(key)
            if cost is None:
                cost = costs[key] = cycles(bytes(read(address, size)))
            schedule.now += cost

        return on_block

    def watch_code(self, base: int, code: bytes) -> None:
        """Hooks the few instructions whose effect Unicorn does not show: SEV, and the end of a critical section."""
        for hook in self._hooks:
            self.uc.hook_del(hook)
        self._hooks = []
        for pattern, action in ((SEV, self._on_sev), (CPSIE_I, self._on_unmask)):
            at = code.find(pattern)
            while at >= 0:
                if at % 2 == 0:
                    self._hooks.append(self.uc.hook_add(UC_HOOK_CODE, action, begin=base + at, end=base + at))
                at = code.find(pattern, at + 1)

    def _on_sev(self, *_: object) -> None:
        self._event = True

    def _on_unmask(self, *_: object) -> None:
        if self.machine.scs.waiting:
            self.machine.schedule.look_up()

    def _on_trap(self, uc: Uc, number: int, _data: object) -> None:
        self._trap = number
        uc.emu_stop()

    # Running.

    def reset(self, vectors: int) -> None:
        """Stack pointer and first instruction from the vector table; from an image's own if it runs under a bootloader."""
        stack, entry = struct.unpack("<2I", self.uc.mem_read(vectors, 8))
        for register in (*FRAME[:6], arm.UC_ARM_REG_PRIMASK, arm.UC_ARM_REG_FAULTMASK, arm.UC_ARM_REG_BASEPRI):
            self.uc.reg_write(register, 0)
        self.uc.reg_write(arm.UC_ARM_REG_CONTROL, 0)
        self.uc.reg_write(XPSR, THUMB)
        self.uc.reg_write(SP, stack)
        self.uc.reg_write(PC, entry | 1)
        self.asleep = self._event = False

    def run(self) -> None:
        """Runs instructions until the slice ends, an exception returns, or the processor sleeps."""
        self._trap = None
        # As `Uc.emu_start` does, but that an error is no exception: every WFE is one.
        self.uc._hook_exception = None
        error = uclib.uc_emu_start(self.uc._uch, self._place.read()[0] | 1, NEVER, 0, 0)
        if self.uc._hook_exception is not None:
            raise self.uc._hook_exception
        if error != UC_ERR_OK:
            # Unicorn reports WFE as an invalid instruction, with the program counter behind it.
            if error == UC_ERR_INSN_INVALID and self._previous() == WFE:
                self.asleep, self._event = not self._event, False
            else:
                self.fault(str(UcError(error)))
        elif self._trap is not None:
            self._take_trap(self._trap)
        elif self.machine.schedule.now < self.machine.schedule.stop_at and self._previous() == WFI:
            self.asleep = True

    def _previous(self) -> bytes:
        """The halfword before the program counter."""
        try:
            return bytes(self.uc.mem_read(self._place.read()[0] - 2, 2))
        except UcError:
            return b""

    def _take_trap(self, number: int) -> None:
        if number == EXCEPTION_RETURN:
            self.leave(self.uc.reg_read(PC) | 1)
        elif number == SOFTWARE_INTERRUPT:
            self.machine.scs.pend_system(SVCALL)
        else:
            self.fault("breakpoint without a debugger" if number == BREAKPOINT else f"trap {number}")

    def wake(self) -> bool:
        """Takes the most urgent exception if it may interrupt, and ends sleep; says whether the processor is awake."""
        scs = self.machine.scs
        if scs.waiting:
            self.asleep = False
            exception = scs.most_urgent()
            if exception is not None and scs.priority(exception) < self._priority():
                self.enter(exception)
        return not self.asleep

    def _priority(self) -> int:
        """The execution priority (ARM ARM B1.5.4)."""
        priority = self.machine.scs.active_priority()
        base, masked, faults_masked = self._masks.read()
        if base:
            priority = min(priority, base)
        if masked & 1:
            priority = min(priority, 0)
        if faults_masked & 1:
            priority = min(priority, -1)
        return priority

    # Exceptions.

    def enter(self, exception: int) -> None:
        """Exception entry: the frame on the stack, the vector in the program counter."""
        uc, scs = self.uc, self.machine.scs
        *values, control, stack = self._before.read()
        floating = bool(control & FPCA)
        active = scs.active[-1] if scs.active else 0
        values[7] = values[7] & 0xF80F_FC00 | THUMB | active | (ALIGNED if stack & 4 else 0)
        frame = struct.pack("<8I", *values)
        if floating:
            frame += struct.pack("<18I", *self._floats.read(), 0)
        top = (stack & ~7) - len(frame)
        uc.mem_write(top, frame)
        link = (0xFFFF_FFF1 if scs.active else 0xFFFF_FFF9) & ~(0x10 if floating else 0)
        scs.enter(exception)
        vector = struct.unpack("<I", uc.mem_read(scs.vectors + 4 * exception, 4))[0]
        self._entered.write([top, link, 0, THUMB | exception, vector | 1])
        self._event = True

    def leave(self, kind: int) -> None:
        """Exception return: `kind` is EXC_RETURN, whose bit 4 is clear for a frame with floating point registers."""
        uc, scs = self.uc, self.machine.scs
        if kind & 4 or not scs.active:
            self.fault(f"return from an exception by 0x{kind:08x}, with {len(scs.active)} active")
            return
        stack = uc.reg_read(SP)
        floating = not kind & 0x10
        size = 104 if floating else 32
        frame = struct.unpack(f"<{size // 4}I", uc.mem_read(stack, size))
        scs.leave()
        if floating:
            self._floats.write(frame[8:25])
        stack += size + (4 if frame[7] & ALIGNED else 0)
        self._left.write([frame[7] & ~ALIGNED, *frame[:6], FPCA if floating else 0, 0, stack, frame[6] | 1])
        self._event = True

    def fault(self, what: str) -> None:
        """Every fault escalates to HardFault; one within HardFault or NMI locks the processor up."""
        pc, lr = self.uc.reg_read(PC), self.uc.reg_read(LR)
        self.machine.report(f"hardfault {what}; pc=0x{pc:08x} lr=0x{lr:08x}")
        if self._priority() < 0:
            self.machine.request_reset("lockup")
        else:
            self.enter(HARD_FAULT)


def cycles(code: bytes) -> int:
    """What a basic block costs. A branch to itself costs more: only an interrupt or a reset ends it."""
    if code == FOREVER:
        return FOREVER_CYCLES
    return max(1, int(instructions(code) * CYCLES_PER_INSTRUCTION))


def instructions(code: bytes) -> int:
    """How many Thumb instructions `code` holds: those that begin 0b11101, 0b11110 or 0b11111 are four bytes long."""
    count = at = 0
    while at < len(code):
        at += 4 if code[at + 1] >> 3 in (0b11101, 0b11110, 0b11111) else 2
        count += 1
    return count
