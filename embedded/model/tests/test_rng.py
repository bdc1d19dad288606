"""The random number generator and its failures."""

from thumb import Program

from nrf52840_model.schedule import MICROSECOND

RNG = 0x4000_D000
VALRDY, VALUE = RNG + 0x100, RNG + 0x508


def draw(machine, count: int) -> list[int]:
    """Bytes as the firmware takes them."""
    machine.bus.task(RNG)
    taken = []
    for _ in range(count):
        machine.schedule.advance(300 * MICROSECOND)
        if machine.bus.read(VALRDY):
            machine.bus.write(VALRDY, 0)
            taken.append(machine.bus.read(VALUE))
    machine.bus.task(RNG + 0x004)
    return taken


def test_bytes_come_at_the_speed_of_the_hardware(machine):
    machine.bus.write(RNG + 0x504, 1)
    machine.bus.task(RNG)
    machine.schedule.advance(247 * MICROSECOND)
    assert machine.bus.read(VALRDY) == 0
    machine.schedule.advance(1 * MICROSECOND)
    assert machine.bus.read(VALRDY) == 1


def test_one_seed_gives_one_sequence_and_another_another():
    def sequence(seed: int) -> list[int]:
        return draw(Program().label("main").branch("main").machine(seed=seed), 32)

    assert sequence(1) == sequence(1) != sequence(2)
    assert len(set(sequence(1))) > 16


def test_a_reset_does_not_repeat_the_sequence(machine):
    first = draw(machine, 16)
    machine.request_reset("soft")
    machine.step()
    assert draw(machine, 16) != first


def test_a_silent_generator_never_has_a_byte_and_recovers(machine):
    machine.rng.fail("silent")
    assert draw(machine, 8) == []
    machine.rng.fail("ok")
    assert len(draw(machine, 8)) == 8


def test_a_stuck_generator_repeats_itself(machine):
    machine.rng.fail("constant")
    assert draw(machine, 8) == [0] * 8


def test_the_shortcut_stops_after_one_byte(machine):
    machine.bus.write(RNG + 0x200, 1)
    machine.bus.task(RNG)
    machine.schedule.advance(1000 * MICROSECOND)
    machine.bus.write(VALRDY, 0)
    machine.schedule.advance(1000 * MICROSECOND)
    assert machine.bus.read(VALRDY) == 0
