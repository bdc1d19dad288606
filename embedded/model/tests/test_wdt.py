"""The watchdog bites."""

from nrf52840_model.schedule import HZ

WDT = 0x4001_0000
RELOAD = 0x6E52_4635


def start(machine, seconds: int, registers: int = 1):
    machine.bus.write(WDT + 0x504, 32_768 * seconds)
    machine.bus.write(WDT + 0x508, registers)
    machine.bus.task(WDT)


def test_an_unfed_watchdog_resets_the_chip_and_says_so(machine):
    start(machine, 2)
    machine.run(1.99)
    assert machine.resets == ["power-on"]
    machine.run(0.02)
    assert machine.resets == ["power-on", "watchdog"]
    assert machine.bus.read(0x4000_0400) == 1 << 1
    assert machine.bus.read(WDT + 0x400) == 0, "after the reset it is off"


def test_a_fed_watchdog_keeps_quiet(machine):
    start(machine, 2)
    for _ in range(5):
        machine.schedule.advance(HZ)
        machine.bus.write(WDT + 0x600, RELOAD)
    machine.step()
    assert machine.resets == ["power-on"]
    assert (machine.wdt.feeds, machine.wdt.longest) == (5, HZ), "as told to whoever asks"


def test_every_enabled_register_must_be_written_and_with_the_right_value(machine):
    start(machine, 2, registers=0b11)
    machine.schedule.advance(HZ)
    machine.bus.write(WDT + 0x600, RELOAD)
    machine.bus.write(WDT + 0x604, RELOAD + 1)
    assert machine.bus.read(WDT + 0x404) == 0b10
    machine.schedule.advance(HZ + HZ // 10)
    machine.step()
    assert machine.resets[-1] == "watchdog"


def test_a_running_watchdog_cannot_be_slowed_down(machine):
    start(machine, 2)
    machine.bus.write(WDT + 0x504, 0xFFFF_FFFF)
    assert machine.bus.read(WDT + 0x504) == 65_536


def test_the_firmwares_own_reset_does_not_stop_it(machine):
    start(machine, 2)
    machine.request_reset("soft")
    machine.step()
    assert machine.bus.read(WDT + 0x400) == 1
    machine.run(2.01)
    assert machine.resets == ["power-on", "soft", "watchdog"]


def test_it_ends_a_processor_that_does_nothing_any_more(machine):
    start(machine, 2)
    machine.frozen = True
    machine.run(2.01)
    assert machine.resets == ["power-on", "watchdog"]
    assert not machine.frozen
