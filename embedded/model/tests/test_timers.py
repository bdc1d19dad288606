"""TIMER and RTC."""

from nrf52840_model.schedule import HZ, MICROSECOND, from_lfclk

TIMER0, RTC1 = 0x4000_8000, 0x4001_1000
COMPARE0 = 0x140


def test_a_timer_compares_at_its_prescaled_clock_and_clears(machine):
    for offset, value in ((0x508, 3), (0x510, 4), (0x540, 250), (0x200, 1)):
        machine.bus.write(TIMER0 + offset, value)
    machine.bus.task(TIMER0)
    machine.schedule.advance(250 * MICROSECOND - 1)
    assert machine.bus.read(TIMER0 + COMPARE0) == 0
    machine.schedule.advance(1)
    assert machine.bus.read(TIMER0 + COMPARE0) == 1
    machine.schedule.advance(100 * MICROSECOND)
    machine.bus.task(TIMER0 + 0x044)
    assert machine.bus.read(TIMER0 + 0x544) == 100


def test_a_stopped_timer_stands_still(machine):
    machine.bus.write(TIMER0 + 0x508, 3)
    machine.bus.task(TIMER0)
    machine.schedule.advance(40 * MICROSECOND)
    machine.bus.task(TIMER0 + 0x004)
    machine.schedule.advance(1000 * MICROSECOND)
    machine.bus.task(TIMER0 + 0x040)
    assert machine.bus.read(TIMER0 + 0x540) == 40


def test_the_rtc_counts_the_slow_clock_and_interrupts_at_compare(machine):
    machine.bus.task(RTC1 + 0x008)
    machine.bus.task(RTC1)
    machine.bus.write(RTC1 + 0x540, 100)
    machine.bus.write(RTC1 + 0x304, 1 << 16)
    machine.schedule.advance(from_lfclk(100) - 1)
    assert machine.bus.read(RTC1 + COMPARE0) == 0
    machine.schedule.advance(1)
    assert machine.bus.read(RTC1 + 0x504) == 100
    assert machine.bus.read(RTC1 + COMPARE0) == 1
    assert machine.scs.read(0x200) >> 17 & 1


def test_a_compare_that_nobody_asked_for_leaves_no_event(machine):
    machine.bus.task(RTC1)
    machine.bus.write(RTC1 + 0x540, 100)
    machine.schedule.advance(from_lfclk(200))
    assert machine.bus.read(RTC1 + COMPARE0) == 0


def test_a_compare_too_near_does_not_match_this_time_round(machine):
    machine.bus.task(RTC1)
    machine.schedule.advance(from_lfclk(50))
    machine.bus.write(RTC1 + 0x304, 1 << 16)
    for near in (50, 51):
        machine.bus.write(RTC1 + 0x540, near)
        machine.schedule.advance(from_lfclk(10) - from_lfclk(9))
        assert machine.bus.read(RTC1 + COMPARE0) == 0
    machine.bus.write(RTC1 + 0x540, machine.bus.read(RTC1 + 0x504) + 2)
    machine.schedule.advance(from_lfclk(3))
    assert machine.bus.read(RTC1 + COMPARE0) == 1


def test_the_rtc_overflows_at_24_bits_and_halfway_compares_again(machine):
    machine.bus.task(RTC1)
    machine.bus.write(RTC1 + 0x540 + 12, 0x80_0000)
    machine.bus.write(RTC1 + 0x304, 1 << 1 | 1 << 19)
    for _ in range(2):
        machine.schedule.advance(256 * HZ)
        assert machine.bus.read(RTC1 + 0x14C) == 1
        assert machine.bus.read(RTC1 + 0x104) == 0
        machine.schedule.advance(256 * HZ)
        assert machine.bus.read(RTC1 + 0x104) == 1
        machine.bus.write(RTC1 + 0x14C, 0)
        machine.bus.write(RTC1 + 0x104, 0)


def test_ticks_come_one_by_one_if_asked_for(machine):
    machine.bus.write(RTC1 + 0x304, 1)
    machine.bus.task(RTC1)
    for _ in range(3):
        machine.schedule.advance(from_lfclk(2) - from_lfclk(1))
        machine.schedule.advance(1)
        assert machine.bus.read(RTC1 + 0x100) == 1
        machine.bus.write(RTC1 + 0x100, 0)
