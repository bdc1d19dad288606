"""Virtual time, and what is due when.

Time is counted in cycles of the 64 MHz system clock. It advances by executed instructions and, while the processor
sleeps, by idle time; nothing here knows the host's clock.
"""

import heapq
from collections.abc import Callable

HZ = 64_000_000
MICROSECOND = HZ // 1_000_000
MILLISECOND = HZ // 1_000
LFCLK_HZ = 32_768


def from_lfclk(ticks: int) -> int:
    """The first cycle that is not earlier than `ticks` of the 32,768 Hz clock."""
    return -(-ticks * HZ // LFCLK_HZ)


def to_lfclk(cycles: int) -> int:
    """Whole ticks of the 32,768 Hz clock in `cycles`."""
    return cycles * LFCLK_HZ // HZ


class Alarm:
    """Something scheduled, which can be cancelled until it is due."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]):
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Makes sure that the action never runs."""
        self.action = None


# A register read this often in a row, each time within so many cycles of the last, is being waited for.
POLLS, POLL_GAP = 4, 200


class Schedule:
    """The clock and the queue of alarms.

    `stop_at` bounds the slice of instructions that is running: whoever needs the processor to look up earlier lowers it.
    """

    def __init__(self) -> None:
        self.now = 0
        self.stop_at = 0
        self._queue: list[tuple[int, int, Alarm]] = []
        self._order = 0
        self._polled = (0, 0, 0)

    def at(self, time: int, action: Callable[[], None]) -> Alarm:
        """Runs `action` when the clock reaches `time` (cycles); alarms of one time run in the order they were set."""
        alarm = Alarm(action)
        self._order += 1
        heapq.heappush(self._queue, (time, self._order, alarm))
        if time < self.stop_at:
            self.stop_at = time
        return alarm

    def after(self, cycles: int, action: Callable[[], None]) -> Alarm:
        """Runs `action` in `cycles` from now."""
        return self.at(self.now + cycles, action)

    def look_up(self) -> None:
        """Ends the running slice at the next basic block: an interrupt may have to be taken."""
        self.stop_at = 0

    def polled(self, address: int) -> None:
        """The firmware read a register that did not yet say what it waits for: after a few times in a row the rest of the
        slice is skipped, since nothing can change before it ends."""
        last, since, times = self._polled
        times = times + 1 if last == address and self.now - since <= POLL_GAP else 1
        if times > POLLS:
            self.now, times = max(self.now, self.stop_at), 0
        self._polled = (address, self.now, times)

    def next(self) -> int | None:
        """When the next alarm is due, if there is any."""
        queue = self._queue
        while queue and queue[0][2].action is None:
            heapq.heappop(queue)
        return queue[0][0] if queue else None

    def run_due(self) -> None:
        """Runs every alarm whose time has come."""
        queue = self._queue
        while queue and queue[0][0] <= self.now:
            alarm = heapq.heappop(queue)[2]
            if alarm.action is not None:
                action, alarm.action = alarm.action, None
                action()

    def advance(self, cycles: int) -> None:
        """Lets `cycles` pass, alarm by alarm, without executing instructions."""
        end = self.now + cycles
        while (due := self.next()) is not None and due <= end:
            self.now = max(self.now, due)
            self.run_due()
        self.now = max(self.now, end)
