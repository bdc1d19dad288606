"""Chips on one clock, which hear each other by radio.

Each chip counts cycles of its own. Whichever has something to do earliest does it, for a slice at most; so no chip is ahead of another by more
than a slice, and frames meet the radios as they stand at that moment, however slow the host is. Real time is waited for only when all sleep: for one
chip, as for several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schedule import HZ, MICROSECOND

if TYPE_CHECKING:
    from .machine import Machine

# Later than anything.
NEVER = 1 << 62
# By how much one of several chips may be ahead of another: as long as a frame takes until its length has come.
SLICE = 192 * MICROSECOND


class Fleet:
    """One chip or several, with one host."""

    def __init__(self, machines: list[Machine]):
        self.machines, self._host = machines, machines[0].host
        if len(machines) > 1:
            start = self.now
            for number, machine in enumerate(machines, 1):
                machine.schedule.now, machine.slice = start, SLICE
                machine.name = f"chip {number}: "
                machine.radio.transmit = self._transmitter(machine)

    def _transmitter(self, sender: Machine):
        others = [machine for machine in self.machines if machine is not sender]

        def transmit(channel: int, psdu: bytes) -> None:
            for machine in others:
                machine.radio.receive(channel, psdu)

        return transmit

    @property
    def now(self) -> int:
        """The time of the chip that is ahead."""
        return max(machine.schedule.now for machine in self.machines)

    def step(self) -> None:
        """Whoever has something to do works; if all sleep, time passes."""
        ready = [machine.ready_at() for machine in self.machines]
        at, now = min(ready), self.now
        # To whoever sleeps time has passed as well, so that what reaches it from outside does so now.
        reached = min(at, now)
        for machine, due in zip(self.machines, ready, strict=True):
            machine.schedule.now = max(machine.schedule.now, min(reached, due))
        if at <= now:
            self.machines[ready.index(at)].work()
            self._host.poll()
            return
        passed = self._host.idle(None if at == NEVER else at - now)
        for machine in self.machines:
            machine.schedule.now = now + passed
            machine.look_after()

    def run(self, seconds: float | None = None) -> None:
        """Runs until one chip is told to quit, or until `seconds` of virtual time have passed."""
        end = NEVER if seconds is None else self.now + int(seconds * HZ)
        while self.now < end and not any(machine.over for machine in self.machines):
            self.step()
