"""Virtual time."""

from nrf52840_model.schedule import HZ, Schedule, from_lfclk, to_lfclk


def test_alarms_run_in_order_of_time_and_then_of_setting():
    schedule, seen = Schedule(), []
    for time, name in ((20, "c"), (10, "a"), (10, "b")):
        schedule.at(time, lambda name=name: seen.append((schedule.now, name)))
    schedule.advance(30)
    assert seen == [(10, "a"), (10, "b"), (20, "c")]
    assert schedule.now == 30


def test_a_cancelled_alarm_never_runs():
    schedule, seen = Schedule(), []
    schedule.after(5, lambda: seen.append("cancelled")).cancel()
    schedule.after(6, lambda: seen.append("kept"))
    schedule.advance(10)
    assert seen == ["kept"]
    assert schedule.next() is None


def test_an_alarm_that_is_set_during_a_slice_shortens_it():
    schedule = Schedule()
    schedule.stop_at = 1000
    schedule.at(400, lambda: None)
    assert schedule.stop_at == 400
    schedule.at(700, lambda: None)
    assert schedule.stop_at == 400


def test_a_tick_of_the_slow_clock_is_never_early():
    for ticks in (1, 3, 1000, 32_768, 0xFFFFFF):
        assert to_lfclk(from_lfclk(ticks)) == ticks
        assert to_lfclk(from_lfclk(ticks) - 1) == ticks - 1
    assert from_lfclk(32_768) == HZ
