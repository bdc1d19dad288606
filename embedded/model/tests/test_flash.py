"""Flash: what the cells do, what survives, and what the firmware must not do."""

import pytest
from thumb import Program, word

from nrf52840_model.faults import ModelFault, PowerLost
from nrf52840_model.flash import PAGE, Storage
from nrf52840_model.schedule import MILLISECOND

NVMC, WEN, ERASE = 0x4001_E000, 0x4001_E504, 0x4001_E508
PLACE = 0xF_0000


def writing(*words: int, erase: bool = False) -> Program:
    """A program that programs words at `PLACE` one after another, as a driver does."""
    program = Program().label("main")
    if erase:
        program.store(2, WEN).store(PLACE, ERASE)
    program.store(1, WEN)
    for index, value in enumerate(words):
        program.store(value, PLACE + 4 * index).read(2, NVMC + 0x400)
    return program.store(0, WEN).label("end").branch("end")


def test_a_store_programs_and_can_only_clear_bits(tmp_path):
    file = tmp_path / "flash"
    writing(0xFFFF_00FF).machine(storage=Storage(file, 1)).run(0.001)
    machine = writing(0x0F0F_0F0F).machine(storage=Storage(file, 1))
    machine.run(0.001)
    assert word(machine, PLACE) == 0x0F0F_000F
    assert Storage(file, 1).flash.word(PLACE) == 0x0F0F_000F


def test_the_driver_reads_back_what_the_cells_hold():
    p = Program().label("main").store(1, WEN).store(0x1234_0000, PLACE).store(0xFFFF_5678, PLACE)
    machine = p.read(2, NVMC + 0x400).read(3, PLACE).load(0, 0x2000_0000).raw(0x6003).label("end").branch("end").machine()
    machine.run(0.001)
    assert word(machine, 0x2000_0000) == 0x1234_0000


def test_an_erase_takes_its_time_and_sets_every_bit():
    machine = writing(1, 2).machine()
    machine.run(0.001)
    before = machine.schedule.now
    machine.bus.write(WEN, 2)
    machine.bus.write(ERASE, PLACE)
    assert machine.schedule.now - before == 85 * MILLISECOND
    assert word(machine, PLACE) == word(machine, PLACE + 4) == 0xFFFF_FFFF
    erasures = machine.memory.flash.erasures
    assert (erasures[PLACE // PAGE], sum(erasures)) == (1, 1)


def test_a_stuck_controller_is_busy_until_a_reset():
    machine = writing(1).machine()
    assert machine.bus.read(NVMC + 0x400) == 1
    machine.nvmc.stuck = True
    machine.run(0.001)
    assert machine.bus.read(NVMC + 0x400) == 0
    machine.request_reset("watchdog")
    machine.step()
    assert machine.bus.read(NVMC + 0x400) == 1


def test_a_third_write_to_a_word_is_a_fault_even_over_restarts(tmp_path):
    file = tmp_path / "flash"
    for _ in range(2):
        writing(0xFFFF_FFFE).machine(storage=Storage(file, 1)).run(0.001)
    with pytest.raises(ModelFault, match="third time"):
        writing(0xFFFF_FFFE).machine(storage=Storage(file, 1)).run(0.001)
    writing(0xFFFF_FFFE, erase=True).machine(storage=Storage(file, 1)).run(0.2)


@pytest.mark.parametrize(
    "program",
    [
        Program().label("main").store(0, PLACE).branch("main"),
        Program().label("main").store(1, WEN).load(0, PLACE).load(1, 0).raw(0x7001).branch("main"),
        Program().label("main").store(1, WEN).store(PLACE, ERASE).branch("main"),
    ],
    ids=["a store without write enable", "a byte store", "an erase without erase enable"],
)
def test_what_the_controller_forbids_is_a_fault(program):
    with pytest.raises(ModelFault):
        program.machine().run(0.001)


def test_power_lost_in_a_write_leaves_the_word_between_old_and_new(tmp_path):
    leftovers = set()
    for seed in range(20):
        file = tmp_path / f"flash{seed}"
        storage = Storage(file, seed)
        storage.supply.fail_at = 2
        with pytest.raises(PowerLost):
            writing(0x1111_1111, 0x2222_2222, 0x3333_3333).machine(storage=storage).run(0.001)
        flash = Storage(file, seed).flash
        assert flash.word(PLACE) == 0x1111_1111
        assert flash.word(PLACE + 4) & 0x2222_2222 == 0x2222_2222, "only bits that were to be cleared may be"
        assert flash.word(PLACE + 8) == 0xFFFF_FFFF
        leftovers.add(flash.word(PLACE + 4))
    assert len(leftovers) > 10, "chance decides which bits"


def test_power_lost_in_an_erase_leaves_a_page_that_is_half_erased():
    seen = set()
    for seed in range(12):
        storage = Storage(None, seed)
        storage.flash.cells[:] = bytes(len(storage.flash.cells))
        storage.supply.fail_at = 1
        with pytest.raises(PowerLost):
            storage.flash.erase(PLACE, PAGE)
        erased = [storage.flash.word(PLACE + at) == 0xFFFF_FFFF for at in range(0, PAGE, 4)]
        assert erased == sorted(erased, reverse=True), "from the front"
        seen.add(sum(erased))
    assert len(seen) > 6


def test_nothing_is_written_while_the_comparator_warns(capsys):
    p = writing(0x1234_5678)
    machine = p.machine()
    machine.power.supply(low=True)
    machine.bus.write(0x4000_0510, 1)
    machine.run(0.001)
    assert word(machine, PLACE) == 0xFFFF_FFFF
    assert "write refused" in capsys.readouterr().out


def test_uicr_is_flash_too_and_survives(tmp_path):
    file = tmp_path / "flash"
    p = Program().label("main").store(1, WEN).store(0xFFFF_FFFE, 0x1000_120C).read(2, NVMC + 0x400)
    p.label("end").branch("end").machine(storage=Storage(file, 1)).run(0.001)
    machine = Program().label("main").branch("main").machine(storage=Storage(file, 1))
    assert word(machine, 0x1000_120C) == 0xFFFF_FFFE


def test_a_file_of_another_size_is_refused(tmp_path):
    (tmp_path / "flash").write_bytes(b"short")
    with pytest.raises(ModelFault, match="not a flash file"):
        Storage(tmp_path / "flash", 1)


def test_dma_reaches_ram_alone(machine):
    with pytest.raises(ModelFault, match="outside RAM"):
        machine.memory.read(PLACE, 4)
    with pytest.raises(ModelFault, match="outside RAM"):
        machine.memory.write(0x2003_FFFF, b"ab")
