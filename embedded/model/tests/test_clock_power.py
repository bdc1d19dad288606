"""Clocks, reset reasons, the power-fail comparator, no VBUS."""

from nrf52840_model.schedule import MICROSECOND, MILLISECOND

CLOCK = POWER = 0x4000_0000


def test_clocks_start_after_the_time_of_their_crystals(machine):
    machine.bus.write(CLOCK + 0x518, 1)
    machine.bus.task(CLOCK)
    machine.bus.task(CLOCK + 0x008)
    machine.schedule.advance(359 * MICROSECOND)
    assert machine.bus.read(CLOCK + 0x100) == 0
    machine.schedule.advance(MICROSECOND)
    assert machine.bus.read(CLOCK + 0x100) == 1
    assert machine.bus.read(CLOCK + 0x104) == 0
    machine.schedule.advance(250 * MILLISECOND)
    assert machine.bus.read(CLOCK + 0x104) == 1
    assert machine.bus.read(CLOCK + 0x418) == 1 << 16 | 1


def test_reset_reasons_accumulate_until_they_are_cleared(machine):
    assert machine.bus.read(POWER + 0x400) == 0
    for reason in ("soft", "pin"):
        machine.request_reset(reason)
        machine.step()
    assert machine.bus.read(POWER + 0x400) == 0b101
    machine.bus.write(POWER + 0x400, 0b001)
    assert machine.bus.read(POWER + 0x400) == 0b100
    machine.request_reset("power-on")
    machine.step()
    assert machine.bus.read(POWER + 0x400) == 0


def test_a_retained_register_survives_a_reset_that_the_firmware_asks_for(machine):
    machine.bus.write(POWER + 0x51C, 0x157)
    machine.request_reset("soft")
    machine.step()
    assert machine.bus.read(POWER + 0x51C) == 0x57
    machine.request_reset("power-on")
    machine.step()
    assert machine.bus.read(POWER + 0x51C) == 0


def test_a_falling_supply_warns_only_if_the_comparator_is_on(machine):
    machine.bus.write(POWER + 0x304, 1 << 2)
    machine.power.supply(low=True)
    assert machine.bus.read(POWER + 0x108) == 0
    machine.bus.write(POWER + 0x510, 1)
    assert machine.bus.read(POWER + 0x108) == 1
    assert machine.scs.read(0x200) & 1, "interrupt 0 is pending"


def test_a_reset_forgets_what_a_peripheral_had_begun(machine):
    machine.bus.task(CLOCK)
    machine.request_reset("soft")
    machine.step()
    machine.schedule.advance(MILLISECOND)
    assert machine.bus.read(CLOCK + 0x100) == 0


def test_there_is_no_cable_in_the_usb_socket(machine):
    assert machine.bus.read(POWER + 0x438) == 0
    machine.bus.write(0x4002_7500, 1)
    assert machine.bus.read(0x4002_7500) == 1
