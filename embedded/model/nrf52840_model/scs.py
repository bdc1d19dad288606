"""System control space of the Cortex-M4: NVIC, system control block, SysTick, cycle counter (ARM ARM B3).

Exceptions are numbered as in IPSR: 2 NMI, 3 HardFault, 11 SVCall, 14 PendSV, 15 SysTick, 16 + n interrupt n. A lower
priority value is more urgent; the nRF52840 implements the upper three bits of each priority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schedule import HZ, from_lfclk

if TYPE_CHECKING:
    from .machine import Machine

HARD_FAULT, SVCALL, PENDSV, SYSTICK, FIRST_INTERRUPT = 3, 11, 14, 15, 16
FIXED = {1: -3, 2: -2, 3: -1}
IDLE_PRIORITY = 256
INTERRUPTS = 48
MASK = (1 << INTERRUPTS) - 1

ICTR, SYST_CSR, SYST_RVR, SYST_CVR, SYST_CALIB = 0x004, 0x010, 0x014, 0x018, 0x01C
ISER, ICER, ISPR, ICPR, IABR, IPR = 0x100, 0x180, 0x200, 0x280, 0x300, 0x400
CPUID, ICSR, VTOR, AIRCR, SCR, CCR, SHPR1, CPACR, STIR = 0xD00, 0xD04, 0xD08, 0xD0C, 0xD10, 0xD14, 0xD18, 0xD88, 0xF00
CORTEX_M4_R0P1 = 0x410F_C241
DWT_CTRL, DWT_CYCCNT = 0x000, 0x004


class SystemControl:
    """Which exceptions are pending, enabled and active, and the registers that say so."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.schedule = machine.schedule
        self.reset()

    def reset(self) -> None:
        """As after a reset."""
        self._values: dict[int, int] = {}
        self._enabled = self._pending = self._lines = 0
        self._system_pending: set[int] = set()
        self._priorities = bytearray(256)
        self._system_priorities = bytearray(12)
        self.active: list[int] = []
        self._cycles_from = self.schedule.now
        self._tick_control = self._tick_reload = 0
        self._tick_from = self.schedule.now
        self._tick_alarm = None

    # Exceptions.

    def line(self, irq: int, high: bool) -> None:
        """The interrupt line of a peripheral is high or low; a high line makes its interrupt pending."""
        bit = 1 << irq
        if not high:
            self._lines &= ~bit
        elif not self._lines & bit:
            self._lines |= bit
            self._pend(bit)

    def _pend(self, bits: int) -> None:
        self._pending |= bits & MASK
        if bits & self._enabled:
            self.schedule.look_up()

    def pend_system(self, exception: int) -> None:
        """Makes HardFault, SVCall, PendSV or SysTick pending."""
        self._system_pending.add(exception)
        self.schedule.look_up()

    @property
    def waiting(self) -> bool:
        """Whether anything enabled is pending, masked or not: it ends WFI."""
        return bool(self._pending & self._enabled or self._system_pending)

    def priority(self, exception: int) -> int:
        """The priority of an exception."""
        if exception in FIXED:
            return FIXED[exception]
        if exception < FIRST_INTERRUPT:
            return self._system_priorities[exception - 4]
        return self._priorities[exception - FIRST_INTERRUPT]

    def most_urgent(self) -> int | None:
        """The pending exception that would be taken first, whatever the processor is doing now."""
        best: tuple[int, int] | None = None
        candidates = set(self._system_pending)
        bits = self._pending & self._enabled
        while bits:
            low = bits & -bits
            candidates.add(FIRST_INTERRUPT + low.bit_length() - 1)
            bits ^= low
        for exception in candidates:
            key = (self.priority(exception), exception)
            if best is None or key < best:
                best = key
        return best[1] if best else None

    def active_priority(self) -> int:
        """The priority of the most urgent active exception."""
        return min((self.priority(exception) for exception in self.active), default=IDLE_PRIORITY)

    def enter(self, exception: int) -> None:
        """The processor takes `exception`."""
        self.active.append(exception)
        if exception < FIRST_INTERRUPT:
            self._system_pending.discard(exception)
        else:
            self._pending &= ~(1 << exception - FIRST_INTERRUPT)

    def leave(self) -> None:
        """The processor returns from the exception it is in; a line that is still high makes it pending again."""
        exception = self.active.pop()
        if exception >= FIRST_INTERRUPT and self._lines >> exception - FIRST_INTERRUPT & 1:
            self._pend(1 << exception - FIRST_INTERRUPT)

    @property
    def vectors(self) -> int:
        """The address of the vector table."""
        return self._values.get(VTOR, 0)

    # Registers.

    def read(self, offset: int) -> int:
        """A register at 0xE000E000 + `offset`."""
        if ISER <= offset < IPR:
            return self._set_of(offset) >> 32 * ((offset & 0x7F) // 4) & 0xFFFF_FFFF
        if IPR <= offset < IPR + 240:
            return int.from_bytes(self._priorities[offset - IPR : offset - IPR + 4], "little")
        if SHPR1 <= offset < SHPR1 + 12:
            return int.from_bytes(self._system_priorities[offset - SHPR1 : offset - SHPR1 + 4], "little")
        if offset == ICSR:
            return self._icsr()
        if SYST_CSR <= offset <= SYST_CALIB:
            return self._read_tick(offset)
        fixed = {ICTR: 1, CPUID: CORTEX_M4_R0P1, AIRCR: 0xFA05_0000}
        return fixed.get(offset, self._values.get(offset, 0))

    def _set_of(self, offset: int) -> int:
        if offset < ISPR:
            return self._enabled
        if offset < IABR:
            return self._pending
        return sum(1 << exception - FIRST_INTERRUPT for exception in self.active if exception >= FIRST_INTERRUPT)

    def _icsr(self) -> int:
        urgent = self.most_urgent() or 0
        value = (self.active[-1] if self.active else 0) | urgent << 12
        return value | (PENDSV in self._system_pending) << 28 | (SYSTICK in self._system_pending) << 26

    def write(self, offset: int, size: int, value: int) -> None:
        """A register of `size` bytes at 0xE000E000 + `offset`; priorities may be written byte by byte."""
        if ISER <= offset < IABR:
            self._write_set(offset, value << 32 * ((offset & 0x7F) // 4))
        elif IPR <= offset < IPR + 240:
            self._write_priorities(self._priorities, offset - IPR, value, size)
        elif SHPR1 <= offset < SHPR1 + 12:
            self._write_priorities(self._system_priorities, offset - SHPR1, value, size)
        elif offset == ICSR:
            self._write_icsr(value)
        elif offset == AIRCR:
            if value >> 16 == 0x05FA and value & 0b100:
                self.machine.request_reset("soft")
        elif offset == STIR:
            self._pend(1 << (value & 0x1FF))
        elif SYST_CSR <= offset <= SYST_CALIB:
            self._write_tick(offset, value)
        else:
            self._values[offset] = value
        self.schedule.look_up()

    def _write_set(self, offset: int, bits: int) -> None:
        if offset < ICER:
            self._enabled |= bits & MASK
        elif offset < ISPR:
            self._enabled &= ~bits
        elif offset < ICPR:
            self._pend(bits)
        else:
            # A line that is high cannot be made not pending.
            self._pending = self._pending & ~bits | self._pending & self._lines

    @staticmethod
    def _write_priorities(table: bytearray, at: int, value: int, size: int) -> None:
        for index, byte in enumerate(value.to_bytes(4, "little")[:size]):
            if at + index < len(table):
                table[at + index] = byte & 0xE0

    def _write_icsr(self, value: int) -> None:
        for exception, set_bit, clear_bit in ((PENDSV, 28, 27), (SYSTICK, 26, 25)):
            if value >> set_bit & 1:
                self.pend_system(exception)
            elif value >> clear_bit & 1:
                self._system_pending.discard(exception)

    # SysTick counts down from its reload value with the processor's clock, or with 32,768 Hz as external reference.

    def _tick_cycles(self, ticks: int) -> int:
        return ticks if self._tick_control & 4 else from_lfclk(ticks)

    def _read_tick(self, offset: int) -> int:
        if offset == SYST_CSR:
            value, self._tick_control = self._tick_control, self._tick_control & ~(1 << 16)
            return value
        if offset == SYST_RVR:
            return self._tick_reload
        if offset == SYST_CVR and self._tick_control & 1 and self._tick_reload:
            elapsed = self.schedule.now - self._tick_from
            ticks = elapsed if self._tick_control & 4 else elapsed * 32_768 // HZ
            return self._tick_reload - ticks % (self._tick_reload + 1)
        return 0

    def _write_tick(self, offset: int, value: int) -> None:
        if offset == SYST_RVR:
            self._tick_reload = value & 0xFF_FFFF
        elif offset == SYST_CSR:
            self._tick_control = value & 7
        if offset in (SYST_CSR, SYST_CVR):
            self._arm_tick()

    def _arm_tick(self) -> None:
        if self._tick_alarm is not None:
            self._tick_alarm.cancel()
            self._tick_alarm = None
        self._tick_from = self.schedule.now
        if self._tick_control & 1 and self._tick_reload:
            self._tick_alarm = self.schedule.after(self._tick_cycles(self._tick_reload + 1), self._tick)

    def _tick(self) -> None:
        self._tick_control |= 1 << 16
        if self._tick_control & 2:
            self.pend_system(SYSTICK)
        self._arm_tick()

    # Data watchpoint and trace: only the cycle counter.

    def read_dwt(self, offset: int) -> int:
        """A register at 0xE0001000 + `offset`."""
        if offset == DWT_CYCCNT:
            return self.schedule.now - self._cycles_from & 0xFFFF_FFFF
        return 0x4000_0001 if offset == DWT_CTRL else 0

    def write_dwt(self, offset: int, value: int) -> None:
        """Setting the cycle counter."""
        if offset == DWT_CYCCNT:
            self._cycles_from = self.schedule.now - value
