"""The serial ports, as embassy's buffered driver uses them."""

from thumb import word

from nrf52840_model.schedule import MICROSECOND

UARTE0, UARTE1, TIMER1, PPI = 0x4000_2000, 0x4002_8000, 0x4000_9000, 0x4001_F000
RAM = 0x2000_1000
ENDRX, RXDRDY, RXSTARTED, ENDTX, ERROR = 0x110, 0x108, 0x14C, 0x120, 0x124
BAUD_1M, BAUD_115200 = 0x1000_0000, 0x01D6_0000
BYTE_AT_1M = 10 * MICROSECOND


def start(machine, *, base=UARTE0, pointer=RAM, size=4, listen=True):
    """Enables the port at 1 Mbaud and perhaps starts to receive."""
    for offset, value in ((0x500, 8), (0x524, BAUD_1M), (0x534, pointer), (0x538, size)):
        machine.bus.write(base + offset, value)
    if listen:
        machine.bus.task(base)


def test_a_byte_arrives_after_its_ten_bit_times(machine):
    start(machine)
    machine.uartes[0].receive(b"A")
    machine.schedule.advance(BYTE_AT_1M - 1)
    assert machine.bus.read(UARTE0 + RXDRDY) == 0
    machine.schedule.advance(1)
    assert machine.bus.read(UARTE0 + RXDRDY) == 1
    assert word(machine, RAM) & 0xFF == ord("A")


def test_the_usual_baud_rates_are_understood(machine):
    start(machine)
    machine.bus.write(UARTE0 + 0x524, BAUD_115200)
    assert abs(machine.uartes[0].byte_time / (640_000_000 / 115_200) - 1) < 0.01


def test_a_full_buffer_ends_and_the_shortcut_starts_the_next(machine):
    start(machine)
    machine.bus.write(UARTE0 + 0x200, 1 << 5)
    machine.bus.write(UARTE0 + 0x534, RAM + 4)
    machine.uartes[0].receive(b"abcdefg")
    machine.schedule.advance(4 * BYTE_AT_1M)
    assert machine.bus.read(UARTE0 + ENDRX) == 1
    assert machine.bus.read(UARTE0 + 0x53C) == 4
    machine.schedule.advance(3 * BYTE_AT_1M)
    assert bytes(machine.cpu.uc.mem_read(RAM, 7)) == b"abcdefg"


def test_events_count_in_a_timer_and_chain_buffers_through_the_ppi(machine):
    # PPI 0: RXDRDY → TIMER1.COUNT. PPI 1: ENDRX → STARTRX, and group 0 off, which holds channel 1.
    for offset, value in ((0x504, 2), (0x508, 3), (0x540 + 4, 8), (0x200, 1 << 1)):
        machine.bus.write(TIMER1 + offset, value)
    machine.bus.task(TIMER1)
    for offset, value in (
        (0x510, UARTE0 + RXDRDY), (0x514, TIMER1 + 0x008), (0x518, UARTE0 + ENDRX), (0x51C, UARTE0),
        (0x914, PPI + 0x004), (0x800, 1 << 1), (0x504, 0b11),
    ):  # fmt: skip
        machine.bus.write(PPI + offset, value)
    start(machine)
    machine.bus.write(UARTE0 + 0x534, RAM + 4)
    machine.uartes[0].receive(b"abcdefg")
    machine.schedule.advance(7 * BYTE_AT_1M)
    machine.bus.task(TIMER1 + 0x040)
    assert machine.bus.read(TIMER1 + 0x540) == 7
    assert bytes(machine.cpu.uc.mem_read(RAM, 7)) == b"abcdefg"
    assert machine.bus.read(PPI + 0x500) == 0b01, "channel 1 has switched itself off"
    machine.uartes[0].receive(b"h")
    machine.schedule.advance(BYTE_AT_1M)
    machine.bus.task(TIMER1 + 0x040)
    assert machine.bus.read(TIMER1 + 0x540) == 0, "compare 1 at 8 has cleared the counter"


def test_bytes_without_a_buffer_overrun_after_the_fifo(machine):
    start(machine, size=2)
    machine.bus.write(UARTE0 + 0x304, 1 << 9)
    machine.uartes[0].receive(b"0123456789")
    machine.schedule.advance(10 * BYTE_AT_1M)
    assert machine.bus.read(UARTE0 + ERROR) == 1
    assert machine.bus.read(UARTE0 + 0x480) == 1
    assert machine.uartes[0].overruns == 2
    machine.bus.write(UARTE0 + 0x480, 1)
    assert machine.bus.read(UARTE0 + 0x480) == 0
    machine.bus.write(UARTE0 + 0x534, RAM + 2)
    machine.bus.write(UARTE0 + 0x538, 16)
    machine.bus.task(UARTE0)
    assert bytes(machine.cpu.uc.mem_read(RAM, 8)) == b"01234567", "what the FIFO held comes first"


def test_flow_control_holds_the_sender_instead(machine):
    start(machine, size=2)
    machine.bus.write(UARTE0 + 0x56C, 1)
    machine.uartes[0].receive(b"0123")
    machine.schedule.advance(20 * BYTE_AT_1M)
    assert machine.uartes[0].overruns == 0
    assert machine.uartes[0].room() == 4096 - 2
    machine.bus.task(UARTE0)
    machine.schedule.advance(3 * BYTE_AT_1M)
    assert bytes(machine.cpu.uc.mem_read(RAM, 2)) == b"23"


def test_sending_takes_the_time_of_the_line(machine):
    sent = []
    machine.uartes[1].transmit = sent.append
    start(machine, base=UARTE1, listen=False)
    machine.cpu.uc.mem_write(RAM, b"hello")
    machine.bus.write(UARTE1 + 0x544, RAM)
    machine.bus.write(UARTE1 + 0x548, 5)
    machine.bus.task(UARTE1 + 0x008)
    machine.schedule.advance(5 * BYTE_AT_1M - 1)
    assert not sent
    machine.schedule.advance(1)
    assert sent == [b"hello"]
    assert machine.bus.read(UARTE1 + ENDTX) == 1
    assert machine.bus.read(UARTE1 + 0x54C) == 5


def test_a_port_that_is_not_enabled_hears_nothing(machine):
    machine.uartes[0].receive(b"lost")
    machine.schedule.advance(10_000 * BYTE_AT_1M)
    start(machine)
    machine.schedule.advance(10 * BYTE_AT_1M)
    assert machine.bus.read(UARTE0 + RXDRDY) == 0


def test_stopping_ends_the_transfer_and_says_when_nothing_more_comes(machine):
    start(machine)
    machine.uartes[0].receive(b"a")
    machine.schedule.advance(BYTE_AT_1M)
    machine.bus.task(UARTE0 + 0x004)
    assert machine.bus.read(UARTE0 + ENDRX) == 1
    assert machine.bus.read(UARTE0 + 0x144) == 1
    assert machine.bus.read(UARTE0 + 0x53C) == 1
