"""Orders, one per line, each answered by a line that begins `ok` or `error`: on standard input and output, or on a socket.

    press N / release N        a button of the board (1 … 4)
    leds                       which LEDs are lit: `ok leds 0100`
    supply low / supply good   the power-fail comparator warns, or stops warning
    power-cycle                the supply fails and comes back: RAM is lost
    reset                      the reset pin
    freeze                     the processor executes nothing until a reset, as if it hung
    flash stuck                the flash controller is busy until a reset: the program hangs at its next write
    power-loss-at-write N      the supply fails in the N-th flash operation from now, and the model exits with 75
    rng ok|silent|constant     how the random number generator behaves
    peers PORT,…               whom radio frames reach
    loss FRACTION              of the frames this radio receives
    unplug NAME / plug NAME    the cable of `link` or `console`
    speed FACTOR               of idle time against real time; 0 skips it
    radio                      the UDP port of this radio: `ok radio 40311`
    status                     time, resets, flash operations, frames, overruns; how often the watchdog was fed, and the longest it was not, in ms
    wear                       how often each page of flash was erased since the model began, those that were: `ok wear 246:3 247:2`
    quit                       ends the model; so does the end of input
"""

import os
import socket
import sys
from collections.abc import Callable

from .host import Air, Host, address_of
from .machine import Machine
from .peripherals.rng import MODES
from .schedule import HZ, MILLISECOND


class Standard:
    """Orders from standard input, answers on standard output."""

    def fileno(self) -> int:
        """What to wait for."""
        return sys.stdin.fileno()

    def read(self) -> bytes:
        """What has come; nothing at the end."""
        return os.read(self.fileno(), 4096)

    def write(self, answer: str) -> None:
        """Says an answer."""
        print(answer, flush=True)


class Socket:
    """Orders and answers on a connection to whoever listens at `tcp:HOST:PORT`."""

    def __init__(self, where: str):
        self._socket = socket.create_connection(address_of("control", where), timeout=10)
        # Whoever gives orders may take their time.
        self._socket.settimeout(None)

    def fileno(self) -> int:
        """What to wait for."""
        return self._socket.fileno()

    def read(self) -> bytes:
        """What has come; nothing at the end."""
        try:
            return self._socket.recv(4096)
        except OSError:
            return b""

    def write(self, answer: str) -> None:
        """Says an answer, if anybody still listens."""
        try:
            self._socket.sendall(f"{answer}\n".encode())
        except OSError:
            pass


class Control:
    """Reads orders and carries them out."""

    def __init__(self, machine: Machine, host: Host, air: Air | None, where: str):
        self.machine, self.host, self.air = machine, host, air
        self._channel = Standard() if where == "stdin" else Socket(where)
        self._input = b""
        self._orders: dict[str, Callable[[str], str]] = {
            "press": lambda n: self._press(n, True),
            "release": lambda n: self._press(n, False),
            "leds": self._leds,
            "supply": self._supply,
            "power-cycle": lambda _: self._reset("power-on"),
            "reset": lambda _: self._reset("pin"),
            "freeze": self._freeze,
            "flash": self._flash,
            "power-loss-at-write": self._power_loss,
            "rng": self._rng,
            "peers": self._peers,
            "loss": self._loss,
            "radio": self._radio,
            "unplug": lambda name: self._plug(name, False),
            "plug": lambda name: self._plug(name, True),
            "speed": self._speed,
            "status": self._status,
            "wear": self._wear,
            "quit": self._quit,
        }

    def watch(self) -> None:
        """Takes orders whenever they come."""
        self.host.watch(self._channel, self._read)

    def _read(self) -> None:
        data = self._channel.read()
        if not data:
            self.host.forget(self._channel)
            self.machine.quit()
            return
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._channel.write(self.order(line.decode("utf-8", "replace")))

    def order(self, line: str) -> str:
        """Carries out one order; returns the answer."""
        word, _, rest = line.strip().partition(" ")
        action = self._orders.get(word)
        if action is None:
            return f"error unknown order {word!r}"
        try:
            return f"ok {action(rest.strip())}".rstrip()
        except (ValueError, KeyError, IndexError) as error:
            return f"error {word}: {error}"

    def _press(self, number: str, pressed: bool) -> str:
        if int(number) not in range(1, 5):
            raise ValueError("buttons are 1 to 4")
        self.machine.press(int(number), pressed)
        return ""

    def _leds(self, _: str) -> str:
        return "leds " + "".join("1" if lit else "0" for lit in self.machine.leds())

    def _supply(self, level: str) -> str:
        self.machine.power.supply({"low": True, "good": False}[level])
        return ""

    def _reset(self, reason: str) -> str:
        self.machine.request_reset(reason)
        return ""

    def _freeze(self, _: str) -> str:
        self.machine.frozen = True
        return ""

    def _flash(self, state: str) -> str:
        self.machine.nvmc.stuck = {"stuck": True}[state]
        return ""

    def _power_loss(self, number: str) -> str:
        supply = self.machine.memory.supply
        if int(number) < 1:
            raise ValueError("operations are counted from 1")
        supply.fail_at = supply.operations + int(number)
        return ""

    def _rng(self, mode: str) -> str:
        if mode not in MODES:
            raise ValueError(f"one of {', '.join(MODES)}")
        self.machine.rng.fail(mode)
        return ""

    def _on_air(self) -> Air:
        if self.air is None:
            raise ValueError("there is no radio: --radio")
        return self.air

    def _radio(self, _: str) -> str:
        return f"radio {self._on_air().port}"

    def _peers(self, ports: str) -> str:
        self._on_air().peers = [int(port) for port in ports.split(",") if port]
        return ""

    def _loss(self, fraction: str) -> str:
        self.machine.radio.loss = float(fraction)
        return ""

    def _plug(self, name: str, plugged: bool) -> str:
        self.machine.lines[name].plug(plugged)
        return ""

    def _speed(self, factor: str) -> str:
        self.host.speed = float(factor)
        return ""

    def _status(self, _: str) -> str:
        machine, radio = self.machine, self.machine.radio
        return (
            f"status seconds {machine.schedule.now / HZ:.3f} resets {len(machine.resets)} "
            f"flash-operations {machine.memory.supply.operations} frames-sent {radio.sent} "
            f"frames-received {radio.received} frames-lost {radio.lost} "
            f"overruns {sum(uarte.overruns for uarte in machine.uartes)} watchdog-feeds {machine.wdt.feeds} "
            f"watchdog-longest {machine.wdt.longest // MILLISECOND}"
        )

    def _wear(self, _: str) -> str:
        erasures = enumerate(self.machine.memory.flash.erasures)
        return " ".join(["wear", *(f"{page}:{count}" for page, count in erasures if count)])

    def _quit(self, _: str) -> str:
        self.machine.quit()
        return ""
