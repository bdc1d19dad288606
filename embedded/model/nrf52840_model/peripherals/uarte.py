"""UARTE0 and UARTE1 (PS 6.34): bytes by EasyDMA at the speed of the line.

A byte takes ten bit times. A byte that finds no buffer waits in the FIFO (6 bytes); beyond that, ERROR with OVERRUN, and
the byte is lost. With hardware flow control (CONFIG.HWFC) the sender is held back instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..schedule import HZ
from .base import Peripheral

STARTRX, STOPRX, STARTTX, STOPTX, FLUSHRX = 0x000, 0x004, 0x008, 0x00C, 0x02C
RXDRDY, ENDRX, TXDRDY, ENDTX, ERROR, RXTO, RXSTARTED, TXSTARTED, TXSTOPPED = (
    0x108, 0x110, 0x11C, 0x120, 0x124, 0x144, 0x14C, 0x150, 0x158,
)  # fmt: skip
ERRORSRC, ENABLE, BAUDRATE, CONFIG = 0x480, 0x500, 0x524, 0x56C
RXD_PTR, RXD_MAXCNT, RXD_AMOUNT, TXD_PTR, TXD_MAXCNT, TXD_AMOUNT = 0x534, 0x538, 0x53C, 0x544, 0x548, 0x54C
ENABLED, OVERRUN, FIFO, LINE = 8, 1, 6, 4096


class Uarte(Peripheral):
    """A UART; `transmit` is given what it sends, `receive` takes what arrives."""

    SHORTCUTS = {5: (ENDRX, STARTRX), 6: (ENDRX, STOPRX)}

    def __init__(self, machine, base: int):
        self.transmit: Callable[[bytes], None] = lambda data: None
        self.overruns = 0
        # Bytes on their way to the chip: the wire does not know about resets.
        self._line: deque[int] = deque()
        self._arriving = False
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self._fifo: deque[int] = deque()
        self._filled = 0
        self.receiving = self._listening = self.sending = False

    # The line.

    def room(self) -> int:
        """How many bytes the line takes now."""
        return LINE - len(self._line)

    def receive(self, data: bytes) -> None:
        """Puts bytes on the line to the chip."""
        self._line.extend(data)
        self._expect()

    @property
    def byte_time(self) -> int:
        """Cycles per byte: start bit, eight data bits, stop bit."""
        # BAUDRATE is the rate in units of 16 MHz / 2^32 (PS 6.34).
        rate = (self.registers.get(BAUDRATE, 0x0400_0000) or 0x0400_0000) * 16_000_000 >> 32
        return 10 * HZ // max(rate, 1)

    def _expect(self) -> None:
        if self._line and not self._arriving:
            self._arriving = True
            self.schedule.after(self.byte_time, self._arrive)

    def _arrive(self) -> None:
        self._arriving = False
        held = self.registers.get(CONFIG, 0) & 1 and self._enabled and not self.receiving
        if self._line and not held:
            self._byte(self._line.popleft())
            self._expect()

    @property
    def _enabled(self) -> bool:
        return self.registers.get(ENABLE, 0) == ENABLED

    # Receiving.

    def _byte(self, byte: int) -> None:
        if not self._enabled or not self._listening:
            return
        if len(self._fifo) >= FIFO:
            self.overruns += 1
            self.registers[ERRORSRC] = self.registers.get(ERRORSRC, 0) | OVERRUN
            self.event(ERROR)
            return
        self._fifo.append(byte)
        self._drain()
        self.event(RXDRDY)
        self._end_if_full()

    def _drain(self) -> None:
        """Moves what the FIFO holds into the buffer."""
        while self.receiving and self._fifo and self._filled < self._capacity:
            self.machine.memory.write(self._pointer + self._filled, bytes([self._fifo.popleft()]))
            self._filled += 1

    def _end_if_full(self) -> None:
        if self.receiving and self._filled >= self._capacity:
            self._end()

    def _end(self) -> None:
        self.receiving = False
        self.registers[RXD_AMOUNT] = self._filled
        self.event(ENDRX)

    def _start_receiving(self) -> None:
        self._pointer = self.registers.get(RXD_PTR, 0)
        self._capacity = self.registers.get(RXD_MAXCNT, 0) & 0xFFFF
        self._filled = 0
        self.receiving = self._listening = True
        self.event(RXSTARTED)
        self._drain()
        self._end_if_full()
        self._expect()

    def _stop_receiving(self) -> None:
        if self.receiving:
            self._end()
        self._listening = False
        self.event(RXTO)

    def _flush(self) -> None:
        self._pointer = self.registers.get(RXD_PTR, 0)
        self._capacity = self.registers.get(RXD_MAXCNT, 0) & 0xFFFF
        self._filled = 0
        self.receiving = True
        self._drain()
        self._end()

    # Sending.

    def _send(self) -> None:
        count = self.registers.get(TXD_MAXCNT, 0) & 0xFFFF
        data = self.machine.memory.read(self.registers.get(TXD_PTR, 0), count)
        self.sending = True
        self.event(TXSTARTED)
        self.after(max(count, 1) * self.byte_time, lambda: self._sent(data))

    def _sent(self, data: bytes) -> None:
        if not self.sending:
            return
        self.sending = False
        self.transmit(data)
        self.registers[TXD_AMOUNT] = len(data)
        if data:
            self.event(TXDRDY)
        self.event(ENDTX)

    def task(self, offset: int) -> None:
        if not self._enabled:
            return
        if offset == STARTRX:
            self._start_receiving()
        elif offset == STOPRX:
            self._stop_receiving()
        elif offset == FLUSHRX:
            self._flush()
        elif offset == STARTTX:
            self._send()
        elif offset == STOPTX:
            self.sending = False
            self.event(TXSTOPPED)

    def set(self, offset: int, value: int) -> None:
        if offset == ERRORSRC:
            self.registers[ERRORSRC] = self.registers.get(ERRORSRC, 0) & ~value
        else:
            super().set(offset, value)
