"""Frames between radios."""

from thumb import Program

from nrf52840_model.peripherals.radio import fcs
from nrf52840_model.schedule import MICROSECOND, MILLISECOND

RADIO, RAM = 0x4000_1000, 0x2000_2000
TXEN, RXEN, START, DISABLE = 0x000, 0x004, 0x008, 0x010
DISABLED, CRCOK, CRCERROR, CCABUSY, PHYEND = 0x110, 0x130, 0x134, 0x148, 0x16C
STATE, CRCSTATUS = 0x550, 0x400
# As embassy sets them: RXREADY_START; RXREADY_CCASTART, CCAIDLE_TXEN, TXREADY_START, CCABUSY_DISABLE, PHYEND_DISABLE.
RECEIVE, TRY_SEND = 1 << 19, 1 << 11 | 1 << 12 | 1 << 18 | 1 << 13 | 1 << 20


def chip(seed: int = 1, channel: int = 25):
    machine = Program().label("main").branch("main").machine(seed=seed)
    for offset, value in ((0x510, 15), (0x508, channel), (0x504, RAM)):
        machine.bus.write(RADIO + offset, value)
    return machine


def listen(machine):
    machine.bus.write(RADIO + 0x200, RECEIVE)
    machine.bus.task(RADIO + RXEN)
    machine.schedule.advance(MILLISECOND)
    assert machine.bus.read(RADIO + STATE) == 3


def send(machine, payload: bytes):
    machine.cpu.uc.mem_write(RAM, bytes([len(payload) + 2]) + payload)
    machine.bus.write(RADIO + 0x200, TRY_SEND)
    machine.bus.task(RADIO + RXEN)
    machine.schedule.advance(10 * MILLISECOND)


def event(machine, offset: int) -> bool:
    return bool(machine.bus.read(RADIO + offset))


def test_a_frame_goes_out_after_assessment_with_its_check_sequence_and_air_time():
    machine, air = chip(), []
    machine.radio.transmit = lambda channel, psdu: air.append((machine.schedule.now, channel, psdu))
    began = machine.schedule.now
    send(machine, b"hello")
    ((ended, channel, psdu),) = air
    assert channel == 25
    assert psdu == b"hello" + fcs(b"hello").to_bytes(2, "little")
    assert ended - began == (130 + 128 + 130 + (6 + 7) * 32) * MICROSECOND
    assert event(machine, PHYEND)
    assert machine.bus.read(RADIO + STATE) == 0, "PHYEND_DISABLE"


def test_the_check_sequence_is_the_standards():
    # CRC-16/KERMIT of "123456789", as catalogues of CRC algorithms give it.
    assert fcs(b"123456789") == 0x2189


def test_a_listening_radio_receives_it():
    sender, receiver = chip(1), chip(2)
    sender.radio.transmit = receiver.radio.receive
    listen(receiver)
    send(sender, b"hello")
    receiver.schedule.advance(MILLISECOND)
    assert event(receiver, PHYEND) and event(receiver, CRCOK)
    assert receiver.bus.read(RADIO + CRCSTATUS) == 1
    assert bytes(receiver.cpu.uc.mem_read(RAM, 6)) == b"\x07hello"
    assert receiver.bus.read(RADIO + STATE) == 2


def test_a_frame_on_another_channel_or_without_a_listener_is_lost():
    for receiver, prepared in ((chip(channel=30), True), (chip(), False)):
        if prepared:
            listen(receiver)
        receiver.radio.receive(25, b"hello" + fcs(b"hello").to_bytes(2, "little"))
        receiver.schedule.advance(10 * MILLISECOND)
        assert not event(receiver, PHYEND)
        assert receiver.radio.lost == 1


def test_a_corrupted_frame_arrives_as_one():
    receiver = chip()
    listen(receiver)
    receiver.radio.receive(25, b"hallo" + fcs(b"hello").to_bytes(2, "little"))
    receiver.schedule.advance(10 * MILLISECOND)
    assert event(receiver, PHYEND) and event(receiver, CRCERROR)
    assert receiver.bus.read(RADIO + CRCSTATUS) == 0


def test_frames_at_once_arrive_one_after_another_if_the_receiver_starts_again():
    receiver = chip()
    listen(receiver)
    for name in (b"one", b"two"):
        receiver.radio.receive(25, name + fcs(name).to_bytes(2, "little"))
    receiver.schedule.advance((6 + 5) * 32 * MICROSECOND)
    assert bytes(receiver.cpu.uc.mem_read(RAM, 4)) == b"\x05one"
    receiver.bus.write(RADIO + PHYEND, 0)
    receiver.bus.task(RADIO + START)
    receiver.schedule.advance(2 * MILLISECOND)
    assert bytes(receiver.cpu.uc.mem_read(RAM, 4)) == b"\x05two"


def test_a_busy_channel_is_heard_before_sending():
    machine = chip()
    listen(machine)
    machine.radio.receive(25, bytes(127))
    machine.schedule.advance(100 * MICROSECOND)
    machine.bus.task(RADIO + DISABLE)
    machine.schedule.advance(10 * MICROSECOND)
    assert event(machine, DISABLED)
    send(machine, b"hello")
    assert event(machine, CCABUSY)
    assert machine.radio.sent == 0


def test_the_loss_rate_loses_frames():
    receiver = chip()
    receiver.radio.loss = 0.5
    for _ in range(400):
        listen(receiver)
        receiver.radio.receive(25, b"hello" + fcs(b"hello").to_bytes(2, "little"))
        receiver.schedule.advance(2 * MILLISECOND)
        receiver.bus.task(RADIO + DISABLE)
        receiver.schedule.advance(MILLISECOND)
    assert 140 < receiver.radio.received < 260


def test_switching_the_power_of_the_radio_off_resets_it():
    machine = chip()
    machine.bus.write(RADIO + 0xFFC, 0)
    machine.bus.write(RADIO + 0xFFC, 1)
    assert machine.bus.read(RADIO + 0x508) == 0
