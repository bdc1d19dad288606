"""Instructions, exceptions, sleep, faults."""

import struct
import time

import pytest
from thumb import Program, word

from nrf52840_model.schedule import HZ

COUNT, OTHER, COPY = 0x2000_0000, 0x2000_0004, 0x2000_0008
ISER, ISPR, IPR, AIRCR = 0xE000_E100, 0xE000_E200, 0xE000_E400, 0xE000_ED0C
RTC0, RTC0_EXCEPTION = 0x4000_B000, 16 + 11


def ticking(program: Program) -> Program:
    """Lets RTC0 interrupt every tick of the slow clock."""
    program.store(0, COUNT).store(0, OTHER).store(1, RTC0 + 0x304).store(1 << 11, ISER).store(1, RTC0)
    return program


def handler(program: Program) -> Program:
    """Counts the ticks."""
    return program.label("tick").vector(RTC0_EXCEPTION, "tick").store(0, RTC0 + 0x100).increment(COUNT).done()


def test_wfe_sleeps_until_an_interrupt_and_time_passes_meanwhile():
    program = ticking(Program().label("main")).label("loop").wfe().increment(OTHER).branch("loop")
    machine = handler(program).machine()
    machine.run(0.01)
    ticks, loops = word(machine, COUNT), word(machine, OTHER)
    assert 325 <= ticks <= 328
    # Entry and return set the event register, so that each tick lets WFE pass twice at most.
    assert ticks <= loops <= 2 * ticks + 1


def test_what_is_wrong_with_a_register_of_the_model_ends_the_run(monkeypatch):
    machine = Program().label("main").read(2, RTC0 + 0x504).label("end").branch("end").machine()

    def broken(_offset: int) -> int:
        raise LookupError("no such register")

    monkeypatch.setattr(machine.rtcs[0], "read", broken)
    with pytest.raises(LookupError):
        machine.run(0.001)


def test_wfi_sleeps_until_an_interrupt():
    program = ticking(Program().label("main")).label("loop").wfi().increment(OTHER).branch("loop")
    machine = handler(program).machine()
    machine.run(0.01)
    assert 325 <= word(machine, COUNT) <= 328
    assert abs(word(machine, COUNT) - word(machine, OTHER)) <= 1


def test_an_event_that_was_sent_lets_the_next_wfe_pass():
    program = Program().label("main").store(0, COUNT).sev().wfe().increment(COUNT).wfe().increment(COUNT)
    machine = program.label("end").branch("end").machine()
    machine.run(0.001)
    assert word(machine, COUNT) == 1
    assert machine.cpu.asleep


def test_a_masked_interrupt_waits_for_the_end_of_the_critical_section():
    program = ticking(Program().label("main").mask())
    program.load(2, 100_000).label("busy").raw(0x3A01).branch("busy", 1).read(3, COUNT).load(0, COPY).raw(0x6003)
    machine = handler(program.unmask().label("end").branch("end")).machine()
    machine.run(0.02)
    assert word(machine, COPY) == 0, "nothing was taken while masked"
    assert word(machine, COUNT) > 300


def test_a_more_urgent_interrupt_preempts_and_an_equal_one_does_not():
    # Interrupt 20 (EGU0) pends 21 in its handler and reads what 21's handler left.
    def program(priority_of_21: int) -> Program:
        p = Program().label("main").store(0, COUNT).store(0, COPY).store(3 << 20, ISER)
        p.store(0x80 | priority_of_21 << 8, IPR + 20).store(1 << 20, ISPR).label("end").branch("end")
        p.label("outer").vector(16 + 20, "outer").store(1 << 21, ISPR).raw(0xBF00).branch("on").label("on")
        p.read(3, COUNT).load(0, COPY).raw(0x6003).done()
        return p.label("inner").vector(16 + 21, "inner").increment(COUNT).done()

    for priority, seen in ((0x40, 1), (0x80, 0)):
        machine = program(priority).machine()
        machine.run(0.001)
        assert word(machine, COUNT) == 1
        assert word(machine, COPY) == seen


def test_an_interrupt_leaves_registers_and_floats_as_they_were():
    # s1 is multiplied by s0 = 1.5 ten times with an interrupt in between each; the handler ruins s0, s1 and r2.
    p = Program().label("main").store(0, COUNT).store(1 << 20, ISER).load(0, 0x3FC0_0000)
    p.raw(0xEE00, 0x0A10).load(0, 0x3F80_0000).raw(0xEE00, 0x0A90).load(2, 10)
    p.label("loop").raw(0xEE60, 0x0A80).load(0, ISPR).load(1, 1 << 20).raw(0x6001, 0xBF00).branch("on").label("on")
    p.raw(0x3A01).branch("loop", 1).raw(0xEE10, 0x1A90).load(0, COPY).raw(0x6001).label("end").branch("end")
    p.label("ruin").vector(16 + 20, "ruin").load(2, 77).load(0, 0).raw(0xEE00, 0x0A10, 0xEE00, 0x0A90)
    machine = p.increment(COUNT).done().machine()
    machine.run(0.001)
    assert word(machine, COUNT) == 10
    assert struct.unpack("<f", machine.cpu.uc.mem_read(COPY, 4))[0] == 1.5**10


def test_a_fault_reaches_the_hard_fault_handler(capsys):
    p = Program().label("main").store(0, COUNT).read(2, 0x6000_0000).label("end").branch("end")
    machine = p.label("fault").vector(3, "fault").increment(COUNT).label("stay").branch("stay").machine()
    machine.run(0.001)
    assert word(machine, COUNT) == 1
    assert "hardfault" in capsys.readouterr().out


def test_a_fault_within_the_hard_fault_handler_locks_up_and_resets():
    p = Program().label("main").read(2, 0x6000_0000).label("fault").vector(3, "fault").raw(0xDE00)
    machine = p.machine()
    for _ in range(8):
        machine.step()
    assert machine.resets[:2] == ["power-on", "lockup"]
    assert machine.power.reasons == 1 << 3


def test_the_firmware_can_reset_the_chip():
    p = Program().label("main").read(2, 0x4000_0400).load(0, COPY).raw(0x6002, 0x2A00).branch("end", 1)
    machine = p.store(0x05FA_0004, AIRCR).label("end").branch("end").machine()
    machine.run(0.001)
    assert machine.resets == ["power-on", "soft"]
    assert word(machine, COPY) == 1 << 2


def test_a_million_and_a_half_instructions_take_well_under_a_second():
    # Blocks of ten instructions, shorter than field arithmetic has them.
    p = Program().label("main").load(2, 150_000).label("loop").raw(*[0x1C5B] * 8, 0x3A01).branch("loop", 1)
    machine = p.store(1, COUNT).label("end").branch("end").machine()
    began = time.process_time()
    machine.run(1_500_000 * 1.4 / HZ)
    took = time.process_time() - began
    assert word(machine, COUNT) == 1
    assert took < 0.8, f"{took:.3f} s"


def test_a_hang_costs_little_until_the_watchdog_ends_it():
    p = Program().label("main").store(32_768 * 4, 0x4001_0504).store(1, 0x4001_0000).mask().label("end").branch("end")
    machine = p.machine()
    began = time.process_time()
    machine.run(4.5)
    assert machine.resets == ["power-on", "watchdog"]
    assert time.process_time() - began < 2
