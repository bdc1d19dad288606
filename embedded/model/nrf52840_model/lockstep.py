"""A chip on a leash: time passes only as far as an order lets it, and what is on its lines are orders and answers.

Whoever has the other end of the lines, with a virtual time of its own, so lives in the chip's time, however busy the host is: the chip and its
surroundings do the same in every run. Orders beside those of `control`:

    until MICROSECONDS         time passes until then, or until the chip has sent something:
                               `ok until MICROSECONDS link HEX console HEX`, with the time it is and what was sent, `-` for nothing;
                               a few ms later than told if that is when an operation of the flash ends
    say NAME HEX               bytes on the line `link` or `console` to the chip, at the speed of the line
"""

from .control import Control
from .host import Host
from .machine import Machine
from .schedule import MICROSECOND

LINES = ("link", "console")


class Lockstep(Control):
    """Carries orders out, and nothing happens between them."""

    def __init__(self, machine: Machine, where: str):
        # A host of its own: while the chip runs, the next order waits.
        super().__init__(machine, Host(speed=0), None, where)
        self._orders |= {"until": self._until, "say": self._say}
        self._sent = {name: bytearray() for name in LINES}
        for name, uarte in zip(LINES, machine.uartes, strict=True):
            uarte.transmit = self._sent[name].extend

    def run(self) -> None:
        """Until `quit` or the end of input."""
        self.watch()
        while not self.machine.over:
            self.host.idle(None)

    def _until(self, microseconds: str) -> str:
        machine, schedule = self.machine, self.machine.schedule
        end = int(microseconds) * MICROSECOND
        alarm = schedule.at(end, lambda: None)
        while schedule.now < end and not any(self._sent.values()) and not machine.over:
            machine.step()
        alarm.cancel()
        sent = []
        for name, data in self._sent.items():
            sent += [name, data.hex() or "-"]
            data.clear()
        return " ".join(["until", str(schedule.now // MICROSECOND), *sent])

    def _say(self, line: str) -> str:
        name, _, data = line.partition(" ")
        self.machine.uartes[LINES.index(name)].receive(bytes.fromhex(data))
        return ""
