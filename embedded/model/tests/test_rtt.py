"""Logs are read as a debug probe would."""

import struct

from nrf52840_model.rtt import Rtt

CONTROL, RING = 0x2000_4000, 0x2000_5000


def block(write: int, read: int, name: bytes = b"SEGGER RTT") -> bytes:
    """A control block with one up-channel over a ring of 16 bytes."""
    return name.ljust(16, b"\0") + struct.pack("<2I", 1, 0) + struct.pack("<6I", 0, RING, 16, write, read, 1)


def test_what_was_logged_goes_to_the_file_once_and_round_the_ring(machine, tmp_path):
    uc, file = machine.cpu.uc, tmp_path / "log"
    rtt = Rtt(uc, CONTROL, file)
    uc.mem_write(RING, b"0123456789abcdef")
    uc.mem_write(CONTROL, block(write=5, read=2))
    rtt.drain()
    rtt.drain()
    assert file.read_bytes() == b"234"
    uc.mem_write(CONTROL, block(write=2, read=14))
    rtt.drain()
    assert file.read_bytes() == b"234" + b"ef01"
    assert bytes(uc.mem_read(CONTROL + 40, 4)) == bytes([2, 0, 0, 0]), "the image sees that it was read"


def test_memory_without_a_channel_is_left_alone(machine, tmp_path):
    file = tmp_path / "log"
    rtt = Rtt(machine.cpu.uc, CONTROL, file)
    rtt.drain()
    for wrong in (block(5, 2, name=b"SEGGER ???"), block(write=16, read=0)):
        machine.cpu.uc.mem_write(CONTROL, wrong)
        rtt.drain()
    assert file.read_bytes() == b""
