#!/usr/bin/env python3
"""Writes vectors/wide.txt: frames with system ids of 32 bits, packed and signed without any library of MAVLink.

    python3 proto/mavlink/tests/vectors/wide.py > proto/mavlink/tests/vectors/wide.txt

No release of pymavlink has such frames yet (2.4.50 refuses them). What they look like is taken from ArduPilot/pymavlink
pull request 1229 as merged: flags SYSID32 (0x02) and TARGET32 (0x04), headers of 10, 13, 14 and 17 bytes, the target
component in the payload, 255 in the payload's field of a target that stands in the header. The rows `golden` are
COMMAND_LONG with the values of that pull request's tests (tests/test_sysid32.py), whose frames and signature came out
the same byte for byte.
"""
import hashlib
import struct

KEY = bytes([42] * 32)
LINK, TIMESTAMP = 3, 1000
SIGNED, SYSID32, TARGET32 = 1, 2, 4
COMPONENT = 11
# Message id, CRC_EXTRA, and where target_system stands, from the standard's definitions.
HEARTBEAT, COMMAND_LONG, PARAM_REQUEST_LIST = (0, 50, None), (76, 152, 30), (21, 159, 0)


def crc(data):
    """CRC-16/MCRF4XX, bit by bit."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x8408 if value & 1 else value >> 1
    return value


def pack(message, sequence, system, target, payload, sign=False, wide_source=None):
    number, seed, at = message
    payload = bytearray(payload)
    flags = SIGNED if sign else 0
    if system > 255 if wide_source is None else wide_source:
        flags |= SYSID32
    if target is not None and target > 255:
        flags |= TARGET32
    if at is not None:
        payload[at] = 255 if target > 255 else target
    while len(payload) > 1 and payload[-1] == 0:
        payload.pop()
    frame = bytearray(struct.pack("<BBBBB", 0xFD, len(payload), flags, 0, sequence))
    frame += struct.pack("<I", system)[: 4 if flags & SYSID32 else 1]
    frame += struct.pack("<B", COMPONENT) + struct.pack("<I", number)[:3]
    if flags & TARGET32:
        frame += struct.pack("<I", target)
    frame += payload
    frame += struct.pack("<H", crc(bytes(frame[1:]) + bytes([seed])))
    if sign:
        frame += struct.pack("<BQ", LINK, TIMESTAMP)[:7]
        frame += hashlib.sha256(KEY + frame).digest()[:6]
    return flags, bytes(payload), bytes(frame)


def row(name, message, sequence, system, target, payload, **how):
    flags, payload, plain = pack(message, sequence, system, target, payload, **how)
    _, _, signed = pack(message, sequence, system, target, payload, sign=True, **how)
    header = target if flags & TARGET32 else "-"
    print(name, flags, system, header, message[0], payload.hex(), plain.hex(), signed.hex())


print("# Made by vectors/wide.py. Component 11; key 32 times 42, link 3, timestamp 1000.")
print("# name, flags, system, target in the header, message id, payload, frame, the same signed")
golden = struct.pack("<7fHBBB", 1, 2, 3, 4, 5, 6, 7, 300, 0, 250, 1)
for system in (42, 0x0A000001):
    for target in (7, 0x0A000002):
        row("golden", COMMAND_LONG, 0, system, target, golden)
heartbeat = struct.pack("<IBBBBB", 7, 2, 3, 0x51, 4, 3)
for sequence, system in enumerate((1, 255, 256, 70000, 0x00FFFFFF, 0xFFFFFFFF)):
    row("heartbeat", HEARTBEAT, sequence, system, None, heartbeat)
row("small", HEARTBEAT, 9, 7, None, heartbeat, wide_source=True)
row("zeros", HEARTBEAT, 10, 70000, None, bytes(9))
for sequence, system in enumerate((1, 70000, 0xFFFFFFFF), 20):
    for target in (0, 255, 256, 0xFFFFFFFF):
        row("params", PARAM_REQUEST_LIST, sequence, system, target, bytes([0, 190]))
