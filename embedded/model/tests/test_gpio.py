"""Pins, and the events that come from them."""

P0, P1, GPIOTE = 0x5000_0000, 0x5000_0300, 0x4000_6000
PORT_EVENT = GPIOTE + 0x17C
PULL_UP, SENSE_LOW, SENSE_HIGH = 3 << 2, 3 << 16, 2 << 16


def pin_cnf(pin: int) -> int:
    return P0 + 0x700 + 4 * pin


def test_an_output_drives_the_led_that_hangs_on_it(machine):
    assert not any(machine.leds()), "an input lights nothing"
    machine.bus.write(pin_cnf(13), 0b11)
    assert machine.leds()[0], "a low pin lights it"
    machine.bus.write(P0 + 0x508, 1 << 13)
    assert not machine.leds()[0]
    machine.bus.write(P0 + 0x50C, 1 << 13)
    assert machine.leds()[0]


def test_a_button_pulls_its_pin_down_while_it_is_pressed(machine):
    machine.bus.write(pin_cnf(11), PULL_UP)
    assert machine.bus.read(P0 + 0x510) >> 11 & 1
    machine.press(1, True)
    assert not machine.bus.read(P0 + 0x510) >> 11 & 1
    machine.press(1, False)
    assert machine.bus.read(P0 + 0x510) >> 11 & 1


def test_the_second_port_has_its_own_pins(machine):
    machine.bus.write(P1 + 0x700 + 4 * 6, PULL_UP)
    assert machine.bus.read(P1 + 0x510) == 1 << 6
    assert machine.bus.read(P0 + 0x510) == 0


def test_a_latched_sense_raises_the_port_event_and_its_interrupt(machine):
    machine.bus.write(P0 + 0x524, 1)
    machine.bus.write(GPIOTE + 0x304, 1 << 31)
    machine.bus.write(pin_cnf(11), PULL_UP | SENSE_LOW)
    assert machine.bus.read(PORT_EVENT) == 0
    machine.press(1, True)
    assert machine.bus.read(PORT_EVENT) == 1
    assert machine.bus.read(P0 + 0x520) == 1 << 11
    assert machine.scs.read(0x200) >> 6 & 1


def test_clearing_the_latch_of_a_pin_still_sensed_raises_the_event_again(machine):
    machine.bus.write(P0 + 0x524, 1)
    machine.bus.write(pin_cnf(11), PULL_UP | SENSE_LOW)
    machine.press(1, True)
    machine.bus.write(PORT_EVENT, 0)
    machine.bus.write(P0 + 0x520, 1 << 11)
    assert machine.bus.read(PORT_EVENT) == 1
    machine.bus.write(PORT_EVENT, 0)
    machine.bus.write(pin_cnf(11), PULL_UP)
    machine.bus.write(P0 + 0x520, 1 << 11)
    assert machine.bus.read(PORT_EVENT) == 0
    assert machine.bus.read(P0 + 0x520) == 0


def test_sensing_a_level_that_is_already_there_fires_at_once(machine):
    machine.bus.write(P0 + 0x524, 1)
    machine.bus.write(pin_cnf(11), PULL_UP | SENSE_HIGH)
    assert machine.bus.read(PORT_EVENT) == 1


def test_a_channel_has_its_event_on_the_edge_it_waits_for(machine):
    machine.bus.write(pin_cnf(11), PULL_UP)
    machine.bus.write(GPIOTE + 0x510, 1 | 11 << 8 | 2 << 16)
    machine.press(1, True)
    assert machine.bus.read(GPIOTE + 0x100) == 1
    machine.bus.write(GPIOTE + 0x100, 0)
    machine.press(1, False)
    assert machine.bus.read(GPIOTE + 0x100) == 0
