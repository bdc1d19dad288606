"""The whole chip: peripherals on the bus, resets, and the work of its processor, slice by slice."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unicorn import UC_ERR_OK, UcError
from unicorn.unicorn_py3.unicorn import MMIO_READ_CFUNC, MMIO_WRITE_CFUNC, uclib

from .bus import Bus
from .cpu import PC, Cpu
from .faults import ModelFault
from .fleet import NEVER, Fleet
from .flash import Storage
from .host import Host
from .image import Image
from .memory import Memory
from .peripherals.clock_power import ClockPower
from .peripherals.gpio import Gpio
from .peripherals.gpiote import Gpiote
from .peripherals.nvmc import Nvmc
from .peripherals.passive import Passive
from .peripherals.ppi import Ppi
from .peripherals.radio import Radio
from .peripherals.rng import Rng
from .peripherals.rtc import Rtc
from .peripherals.timer import Timer
from .peripherals.uarte import Uarte
from .peripherals.wdt import Wdt
from .rtt import Rtt
from .schedule import MILLISECOND, Schedule
from .scs import SystemControl

# The longest slice of instructions between two looks at the host.
SLICE = MILLISECOND
PERIPHERALS = (0x4000_0000, 0x8_0000)
GPIO_PAGE = (0x5000_0000, 0x1000)
# Trace and debug units of the core: they read as 0.
PRIVATE_PERIPHERALS = ((0xE000_0000, 0x1000), (0xE000_2000, 0xC000), (0xE004_0000, 0xC_0000))


@dataclass(frozen=True)
class Board:
    """What sits around the chip on Nordic's nRF52840 DK: (port, pin), all active low."""

    leds = ((0, 13), (0, 14), (0, 15), (0, 16))
    buttons = ((0, 11), (0, 12), (0, 24), (0, 25))


class Machine:
    """An nRF52840 with an image in its flash."""

    def __init__(self, image: Image, *, storage: Storage | None = None, seed: int = 1, host: Host | None = None):
        self.schedule = Schedule()
        self.bus = Bus()
        self.host = host or Host(speed=0)
        self.board = Board()
        # Counts resets, so that what a peripheral had begun before one does not end after it.
        self.generation = 0
        self._reset: str | None = None
        # The processor executes nothing until a reset.
        self.frozen = False
        self._over = False
        self._upkeep = 0
        self.slice = SLICE
        # Goes before what is reported of this chip, where there are several.
        self.name = ""
        self._ended: Exception | None = None
        self._callbacks: list[object] = []
        self.resets: list[str] = []
        self.lines: dict[str, object] = {}
        self.rtt: Rtt | None = None
        self.scs = SystemControl(self)
        self.cpu = Cpu(self)
        self.memory = Memory(self, self.cpu.uc, storage or Storage(None, seed), seed)
        self._attach_peripherals(seed)
        self._map_registers()
        self._vectors = image.vectors
        self.memory.install(image.segments)
        self.cpu.watch_code(0, bytes(self.memory.flash.cells))
        self._restart("power-on")

    def _attach_peripherals(self, seed: int) -> None:
        self.ppi = Ppi(self, 0x4001_F000)
        self.power = ClockPower(self, 0x4000_0000)
        self.radio = Radio(self, 0x4000_1000, seed)
        self.uartes = [Uarte(self, 0x4000_2000), Uarte(self, 0x4002_8000)]
        self.gpiote = Gpiote(self, 0x4000_6000)
        self.gpio = Gpio(self, GPIO_PAGE[0])
        self.rng = Rng(self, 0x4000_D000, seed)
        self.wdt = Wdt(self, 0x4001_0000)
        self.nvmc = Nvmc(self, 0x4001_E000)
        timers = ((0x4000_8000, 4), (0x4000_9000, 4), (0x4000_A000, 4), (0x4001_A000, 6), (0x4001_B000, 6))
        rtcs = ((0x4000_B000, 3), (0x4001_1000, 4), (0x4002_4000, 4))
        self.timers = [Timer(self, base, channels) for base, channels in timers]
        self.rtcs = [Rtc(self, base, channels) for base, channels in rtcs]
        self._reset_together = [
            self.ppi, self.radio, *self.uartes, self.gpiote, self.gpio, self.rng, self.nvmc, *self.timers, *self.rtcs,
            Passive(self, 0x4002_7000), Passive(self, 0x4000_C000),
        ]  # fmt: skip

    def _map_registers(self) -> None:
        bus, scs = self.bus, self.scs
        for base, size in (PERIPHERALS, GPIO_PAGE):
            self._map(
                base,
                size,
                lambda offset, base=base: bus.read(base + offset),
                lambda offset, _size, value, base=base: bus.write(base + offset, value),
            )
        self._map(0xE000_E000, 0x1000, lambda offset: scs.read(offset & ~3) >> 8 * (offset & 3), scs.write)
        self._map(0xE000_1000, 0x1000, scs.read_dwt, lambda offset, _size, value: scs.write_dwt(offset, value))
        for base, size in PRIVATE_PERIPHERALS:
            self._map(base, size, lambda _offset: 0, lambda _offset, _size, _value: None)

    def _map(self, base: int, size: int, read: Callable[[int], int], write: Callable[[int, int, int], None]) -> None:
        """Maps registers. What ends the run, or is wrong with the model, is kept until Unicorn has returned: nothing may be thrown through it.

        `Uc.mmio_map` wraps what it is given twice, which would take longer than most registers do.
        """

        def on_read(_engine: object, offset: int, _size: int, _data: object) -> int:
            try:
                return read(offset) if self._ended is None else 0
            except Exception as end:
                self._end(end)
                return 0

        def on_write(_engine: object, offset: int, width: int, value: int, _data: object) -> None:
            try:
                if self._ended is None:
                    write(offset, width, value)
            except Exception as end:
                self._end(end)

        callbacks = MMIO_READ_CFUNC(on_read), MMIO_WRITE_CFUNC(on_write)
        self._callbacks.append(callbacks)
        status = uclib.uc_mmio_map(self.cpu.uc._uch, base, size, callbacks[0], 0, callbacks[1], 0)
        if status != UC_ERR_OK:
            raise UcError(status)

    def _end(self, end: Exception) -> None:
        self._ended = end
        self.cpu.uc.emu_stop()

    # What happens to the chip.

    def report(self, what: str) -> None:
        """One line on standard output for whoever runs the model."""
        print(f"{self.name}{what}", flush=True)

    def fail(self, why: str) -> None:
        """The firmware did what no correct firmware does: the run ends."""
        raise ModelFault(f"{why}; pc=0x{self.cpu.uc.reg_read(PC):08x}")

    def quit(self) -> None:
        """Ends the run after the current slice."""
        self._over = True
        self.schedule.look_up()

    def request_reset(self, reason: str) -> None:
        """Resets the chip once the running slice has ended: `power-on`, `pin`, `watchdog`, `soft` or `lockup`."""
        self._reset = reason
        self.schedule.look_up()

    def _restart(self, reason: str) -> None:
        self._reset = None
        self.frozen = False
        self.generation += 1
        self.resets.append(reason)
        if self.rtt is not None:
            self.rtt.drain()
        self.memory.settle()
        if reason == "power-on":
            self.memory.power_up()
        self.scs.reset()
        self.power.reset_by(reason)
        for peripheral in self._reset_together:
            peripheral.reset()
        self.wdt.reset_by(reason)
        self.cpu.reset(self._vectors)
        self.report(f"reset {reason}")

    # Time.

    @property
    def over(self) -> bool:
        """Whether the run is to end."""
        return self._over

    def ready_at(self) -> int:
        """When this chip has something to do: now, at its next alarm, or `NEVER`."""
        if self._reset is not None or not self.frozen and (not self.cpu.asleep or self.scs.waiting):
            return self.schedule.now
        due = self.schedule.next()
        return NEVER if due is None else due

    def work(self) -> None:
        """What is due, then an exception if one is pending, then a slice of instructions if the processor is awake."""
        try:
            self._work()
        except UcError as error:
            # The stack pointer or the vector table is gone.
            print(f"[model] lock-up: {error}", file=sys.stderr)
            self.request_reset("lockup")
        self.look_after()

    def _work(self) -> None:
        self.schedule.run_due()
        if self._reset is not None:
            self._restart(self._reset)
        if self.frozen or not self.cpu.wake():
            return
        horizon = self.schedule.now + self.slice
        due = self.schedule.next()
        self.schedule.stop_at = horizon if due is None else min(due, horizon)
        self.cpu.run()
        if self._ended is not None:
            raise self._ended
        self.memory.settle()

    def step(self) -> None:
        """Some work, or some idle time."""
        Fleet([self]).step()

    def run(self, seconds: float | None = None) -> None:
        """Runs until `quit`, or until `seconds` of virtual time have passed."""
        Fleet([self]).run(seconds)

    def look_after(self) -> None:
        """Keeps up, if it is some time ago."""
        if self.schedule.now >= self._upkeep:
            self._upkeep = self.schedule.now + SLICE
            self.keep_up()

    def keep_up(self) -> None:
        """Lines reconnect and flush, logs are drained."""
        for line in self.lines.values():
            line.serve()
        if self.rtt is not None:
            self.rtt.drain()

    def attach_rtt(self, image: Image, path: Path) -> None:
        """Logs of the image go to `path`."""
        if image.rtt is not None:
            self.rtt = Rtt(self.cpu.uc, image.rtt, path)

    # The board.

    def press(self, button: int, pressed: bool) -> None:
        """Presses or releases one of the board's buttons (1 … 4)."""
        port, pin = self.board.buttons[button - 1]
        self.gpio.drive(port, pin, False if pressed else None)

    def leds(self) -> list[bool]:
        """Which of the board's LEDs (1 … 4) are lit."""
        return [self.gpio.drives_low(port, pin) for port, pin in self.board.leds]
