"""Chips on one clock."""

import pytest
from test_radio import chip, event, listen
from thumb import Program

from nrf52840_model.fleet import SLICE, Fleet
from nrf52840_model.peripherals.radio import fcs
from nrf52840_model.schedule import MILLISECOND

CRCOK = 0x130


def sleeper():
    """A chip that does nothing until something happens to it."""
    machine = Program().label("main").wfe().branch("main").machine()
    machine.run(0.001)
    return machine


def busy():
    """A chip that computes without an end."""
    return Program().label("main").raw(0x3001).branch("main").machine()


def test_no_chip_is_ahead_of_another_by_more_than_a_slice_while_one_computes():
    chips = [busy(), sleeper(), busy()]
    fleet = Fleet(chips)
    alarms, start = [], fleet.now
    for n in range(1, 6):
        chips[1].schedule.at(start + n * 777_777, lambda: alarms.append(min(chip.schedule.now for chip in chips)))
    while fleet.now < start + 64 * MILLISECOND:
        fleet.step()
        times = [chip.schedule.now for chip in chips]
        assert max(times) - min(times) <= SLICE + 100, "a basic block is never cut"
    assert len(alarms) == 5
    for n, at in enumerate(alarms, 1):
        assert abs(at - start - n * 777_777) <= SLICE + 100


def test_chips_of_a_fleet_hear_each_other_and_nobody_hears_himself():
    chips = [chip(1), chip(2), chip(3, channel=26)]
    fleet = Fleet(chips)
    for machine in chips:
        listen(machine)
    chips[0].radio.transmit(25, b"hello" + fcs(b"hello").to_bytes(2, "little"))
    fleet.run(0.002)
    assert [event(machine, CRCOK) for machine in chips] == [False, True, False]
    assert [machine.radio.received for machine in chips] == [0, 1, 0]


@pytest.mark.parametrize("ends", [0, 1])
def test_the_end_of_one_is_the_end_of_all(ends):
    chips = [busy(), busy()]
    chips[ends].quit()
    Fleet(chips).run()
    assert all(machine.schedule.now < MILLISECOND for machine in chips)


def test_a_frozen_chip_is_waited_for_by_nobody():
    chips = [busy(), sleeper()]
    chips[0].frozen = True
    start = chips[1].schedule.now
    chips[1].schedule.at(start + 5 * MILLISECOND, lambda: chips[1].quit())
    Fleet(chips).run(1.0)
    assert chips[1].schedule.now < start + 6 * MILLISECOND
