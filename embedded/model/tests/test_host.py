"""The pace of real time: what a busy host adds to a sleep is made up for."""

import pytest

from nrf52840_model import host as module
from nrf52840_model.host import Host
from nrf52840_model.schedule import HZ, MILLISECOND


class Clock:
    """Real time on a host that wakes its sleepers too late."""

    def __init__(self, late: float):
        self.now, self.late = 0.0, late

    def sleep(self, timeout: float) -> None:
        self.now += timeout + self.late if timeout else 0


@pytest.fixture
def late(monkeypatch):
    def start(seconds: float, speed: float = 1.0) -> tuple[Host, Clock]:
        clock, host = Clock(seconds), Host(speed)
        monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
        monkeypatch.setattr(host, "_serve", clock.sleep)
        return host, clock

    return start


def sleep(host: Host, cycles: int) -> None:
    """Sleeps until an alarm, as the machine does: again and again until it is due."""
    while cycles > 0:
        cycles -= host.idle(cycles)


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_many_short_sleeps_take_as_long_as_one(late, speed):
    host, clock = late(0.003, speed)
    for _ in range(1000):
        sleep(host, MILLISECOND)
    assert 1 / speed <= clock.now <= 1 / speed + 0.004


def test_a_sleep_is_never_shorter_than_what_was_overslept_before(late):
    host, clock = late(0.010)
    sleep(host, MILLISECOND)
    assert clock.now == pytest.approx(0.011)
    sleep(host, 9 * MILLISECOND)
    assert clock.now == pytest.approx(0.011), "nine of the ten milliseconds too many"
    sleep(host, 2 * MILLISECOND)
    assert clock.now > 0.011


def test_what_is_made_up_for_is_bounded(late):
    host, clock = late(100.0)
    sleep(host, MILLISECOND)
    before = clock.now
    sleep(host, HZ // 4)
    assert clock.now == before
    sleep(host, MILLISECOND)
    assert clock.now > before
