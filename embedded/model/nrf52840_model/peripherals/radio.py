"""RADIO in IEEE 802.15.4 mode, 250 kbit/s (PS 6.20.12): ramp-up, clear channel assessment, frames with their air time.

A frame in RAM is its length byte, the payload, and two bytes for the FCS, which the radio computes; after reception the
link quality stands in their place (PS 6.20.12). On air a frame takes 32 µs per byte after six bytes of header. A frame
that begins while the receiver is not listening is lost, except that it waits as long as this radio transmits itself (its
sender would have sensed that) and `PATIENCE` longer, because the models' clocks do not run in step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from ..schedule import MICROSECOND, MILLISECOND
from .base import Peripheral

TXEN, RXEN, START, STOP, DISABLE, CCASTART, CCASTOP = 0x000, 0x004, 0x008, 0x00C, 0x010, 0x02C, 0x030
READY, END, DISABLED, CRCOK, CRCERROR, FRAMESTART = 0x100, 0x10C, 0x110, 0x130, 0x134, 0x138
CCAIDLE, CCABUSY, CCASTOPPED, TXREADY, RXREADY, PHYEND = 0x144, 0x148, 0x14C, 0x154, 0x158, 0x16C
CRCSTATUS, RXCRC, PACKETPTR, FREQUENCY, MODE, STATE, POWER = 0x400, 0x40C, 0x504, 0x508, 0x510, 0x550, 0xFFC
IS_DISABLED, RXRU, RXIDLE, RX, RXDISABLE, TXRU, TXIDLE, TX, TXDISABLE = 0, 1, 2, 3, 4, 9, 10, 11, 12
IEEE802154_250KBIT = 15

RAMP, RAMP_DOWN, ASSESSMENT = 130 * MICROSECOND, 6 * MICROSECOND, 128 * MICROSECOND
BYTE, HEADER = 32 * MICROSECOND, 6 * 32 * MICROSECOND
SPACING = 640 * MICROSECOND
PATIENCE = 2 * MILLISECOND
WAITING = 64
LINK_QUALITY = 200


def fcs(data: bytes) -> int:
    """The frame check sequence: CRC-16 of ITU-T, least significant bit first, starting from 0 (IEEE 802.15.4-2006, 7.2.1.9)."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    return crc


class Radio(Peripheral):
    """RADIO at 0x40001000, interrupt 1. `transmit` is given the channel and a PSDU; `receive` takes them."""

    SHORTCUTS = {
        0: (READY, START),
        1: (END, DISABLE),
        2: (DISABLED, TXEN),
        3: (DISABLED, RXEN),
        5: (END, START),
        11: (RXREADY, CCASTART),
        12: (CCAIDLE, TXEN),
        13: (CCABUSY, DISABLE),
        17: (CCAIDLE, STOP),
        18: (TXREADY, START),
        19: (RXREADY, START),
        20: (PHYEND, DISABLE),
        21: (PHYEND, START),
    }

    def __init__(self, machine, base: int, seed: int):
        self.transmit: Callable[[int, bytes], None] = lambda channel, psdu: None
        self.loss = 0.0
        self.sent = self.received = self.lost = 0
        self._chance = Random(f"air {seed}")
        self._air: deque[tuple[int, bytes]] = deque()
        self._busy_until = 0
        self._landing = False
        super().__init__(machine, base)

    def clear(self) -> None:
        super().clear()
        self.state = IS_DISABLED
        self._turn = 0

    # States: every change invalidates what was under way (`_turn`).

    def _go(self, state: int) -> None:
        self.state = state
        self._turn += 1

    def _later(self, cycles: int, action: Callable[[], None]) -> None:
        turn = self._turn

        def unless_changed() -> None:
            if self._turn == turn:
                action()

        self.after(cycles, unless_changed)

    def task(self, offset: int) -> None:
        if offset == RXEN and self.state in (IS_DISABLED, TXIDLE):
            self._go(RXRU)
            self._later(RAMP, lambda: self._ready(RXIDLE, RXREADY))
        elif offset == TXEN and self.state in (IS_DISABLED, RXIDLE):
            self._go(TXRU)
            self._later(RAMP, lambda: self._ready(TXIDLE, TXREADY))
        elif offset == START and self.state == RXIDLE:
            self._go(RX)
        elif offset == START and self.state == TXIDLE:
            self._start_sending()
        elif offset == STOP and self.state in (RX, TX):
            self._go(RXIDLE if self.state == RX else TXIDLE)
        elif offset == DISABLE:
            self._disable()
        elif offset == CCASTART and self.state == RXIDLE:
            self._later(ASSESSMENT, self._assessed)
        elif offset == CCASTOP:
            self._turn += 1
            self.event(CCASTOPPED)

    def _ready(self, state: int, event: int) -> None:
        self._go(state)
        self.event(event)
        self.event(READY)

    def _disable(self) -> None:
        if self.state == IS_DISABLED:
            self.event(DISABLED)
            return
        self._go(RXDISABLE if self.state <= RXDISABLE else TXDISABLE)
        self._later(RAMP_DOWN, self._disabled)

    def _disabled(self) -> None:
        self._go(IS_DISABLED)
        self.event(DISABLED)

    def get(self, offset: int) -> int:
        if offset == STATE:
            self.schedule.polled(self.base + STATE)
            return self.state
        return super().get(offset)

    def set(self, offset: int, value: int) -> None:
        if offset == POWER and not value & 1:
            self.reset()
        super().set(offset, value)

    @property
    def channel(self) -> int:
        """The frequency in MHz above 2,400."""
        return self.registers.get(FREQUENCY, 0) & 0x7F

    @property
    def _speaks_802154(self) -> bool:
        return self.registers.get(MODE, 0) & 0xF == IEEE802154_250KBIT

    # Sending.

    def _assessed(self) -> None:
        self.event(CCABUSY if self.schedule.now < self._busy_until else CCAIDLE)

    def _start_sending(self) -> None:
        if not self._speaks_802154:
            self.machine.fail("RADIO transmits in a mode other than IEEE 802.15.4 with 250 kbit/s")
        length = self.machine.memory.read(self.registers.get(PACKETPTR, 0), 1)[0] & 0x7F
        payload = self.machine.memory.read(self.registers.get(PACKETPTR, 0) + 1, max(length - 2, 0))
        psdu = payload + fcs(payload).to_bytes(2, "little")
        self._go(TX)
        self._busy_until = self.schedule.now + HEADER + len(psdu) * BYTE
        self._later(HEADER, lambda: self._sending(psdu))

    def _sending(self, psdu: bytes) -> None:
        self.event(FRAMESTART)
        self._later(len(psdu) * BYTE, lambda: self._sent(psdu))

    def _sent(self, psdu: bytes) -> None:
        self._go(TXIDLE)
        self.sent += 1
        self.transmit(self.channel, psdu)
        self.event(END)
        self.event(PHYEND)

    # Receiving.

    def receive(self, channel: int, psdu: bytes) -> None:
        """A frame of another radio begins, or will begin once those before it are over."""
        if self._chance.random() < self.loss or len(self._air) >= WAITING or not 3 <= len(psdu) <= 127:
            self.lost += 1
            return
        self._air.append((channel, psdu))
        if not self._landing:
            self._land(max(self._busy_until - self.schedule.now, 0), PATIENCE)

    def _land(self, wait: int, patience: int) -> None:
        self._landing = True
        self.schedule.after(wait, lambda: self._begin(patience))

    def _begin(self, patience: int) -> None:
        """The first frame waiting begins on air."""
        channel, psdu = self._air[0]
        if self.state in (TXRU, TX):
            self._land(SPACING, PATIENCE)
        elif self.state != RX and patience > 0:
            self._land(100 * MICROSECOND, patience - 100 * MICROSECOND)
        else:
            self._air.popleft()
            time = HEADER + len(psdu) * BYTE
            self._busy_until = self.schedule.now + time
            heard = self.state == RX and self._speaks_802154 and channel == self.channel
            if heard:
                self._later(HEADER, lambda: self.event(FRAMESTART))
                self._later(time, lambda: self._receive(psdu))
            self.lost += not heard
            self.schedule.after(time + SPACING, self._over)

    def _over(self) -> None:
        self._landing = False
        if self._air:
            self._land(0, PATIENCE)

    def _receive(self, psdu: bytes) -> None:
        """The frame is complete: length, payload and link quality go to RAM."""
        payload, check = psdu[:-2], int.from_bytes(psdu[-2:], "little")
        self.machine.memory.write(
            self.registers.get(PACKETPTR, 0), bytes([len(psdu)]) + payload + bytes([LINK_QUALITY])
        )
        self.received += 1
        good = fcs(payload) == check
        self.registers[CRCSTATUS], self.registers[RXCRC] = int(good), check
        self._go(RXIDLE)
        self.event(CRCOK if good else CRCERROR)
        self.event(END)
        self.event(PHYEND)
