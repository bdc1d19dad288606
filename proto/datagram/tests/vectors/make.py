"""Makes datagrams.txt from docs/protocol.md, section 20, without the code under test.

python3 -m pip install cryptography && python3 make.py > datagrams.txt     (made with cryptography 48.0.0)
"""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESCCM

SUITE = b"QUIVER-AINQ-RISTRETTO255-SHA512-v1"
KINDS = {"single": 0, "batch": 1, "signed single": 2, "signed batch": 3, "again": 4, "signed again": 5, "manifest": 6}
LEADER = 1 << 20


def lp(data):
    return struct.pack(">I", len(data)) + data


def prf(key, label, data):
    return hmac.new(key, lp(SUITE) + lp(label) + data, hashlib.sha256).digest()


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def first(kind, epoch, slot):
    return bytes([1 << 6 | kind << 3 | epoch & 7]) + varint(0 if slot == LEADER else slot + 1)


def nonce(signed, counter):
    return bytes([signed]) + bytes(8) + struct.pack(">I", counter)


def payloads(key, name, epoch, slot, counter, body):
    kind = KINDS[name]
    header = first(kind, epoch, slot) + struct.pack(">H", counter & 0xFFFF)
    sealed = AESCCM(key, tag_length=8).encrypt(nonce(kind in (2, 3, 5, 6), counter), body, header)
    return header + sealed


def announcement(key, epoch, slot, boot, salt, number, body):
    header = first(7, epoch, slot) + struct.pack(">I", boot) + salt + struct.pack(">I", number)
    return header + AESCCM(key, tag_length=16).encrypt(nonce(0, number), body, header)


traffic = bytes(range(32))
print("# key: K_tr, slot, boot number, salt; the datagram key, the announcement key")
for slot, boot, salt in [(0, 1, bytes(8)), (5, 0x01020304, bytes(range(8))), (LEADER, 7, b"\xff" * 8)]:
    start = struct.pack(">II", slot, boot) + salt
    keys = [prf(traffic, label, start)[:16].hex() for label in (b"datagram", b"announcement")]
    print("key", traffic.hex(), slot, boot, salt.hex(), *keys)

key = bytes(range(0xA0, 0xB0))
print("# payloads: key, kind, counter of the epoch, slot, number, what is sealed; the datagram")
for name, epoch, slot, counter, body in [
    ("single", 1, 0, 0, b"x"),
    ("single", 2, 126, 65_536, bytes(range(40))),
    ("batch", 7, 127, 0x01020304, b"\x01a\x03bcd"),
    ("signed single", 8, LEADER, 1, b"land" + bytes(64)),
    ("again", 9, 16_382, 65_535, b"\x01\x00\x00\x00\x07\x04land"),
    ("signed again", 10, 16_383, 70_000, b"\x02\x00\x01\x00\x00\x01a" + bytes(64)),
    ("manifest", 11, 999_999, 3, bytes(4) + bytes(range(16)) + bytes(64)),
]:
    print("payloads", key.hex(), name.replace(" ", "-"), epoch, slot, counter, body.hex(), payloads(key, name, epoch, slot, counter, body).hex())

print("# announcement: key, counter of the epoch, slot, boot number, salt, number, what is sealed; the datagram")
for epoch, slot, boot, number, body in [
    (1, 0, 1, 0, bytes(7)),
    (3, LEADER, 0xFFFFFFFF, 9, b"\x00\x0a\x00\x00\x01\x00\x02\x00\x01\x01\x00"),
]:
    print("announcement", key.hex(), epoch, slot, boot, "0011223344556677", number, body.hex(), announcement(key, epoch, slot, boot, bytes.fromhex("0011223344556677"), number, body).hex())

print("# hash: kind, number, what is sealed; the hash in a manifest")
for kind, counter, body in [(0, 0, b"x"), (1, 65_537, b"\x01a\x03bcd")]:
    digest = hashlib.sha256(lp(b"quiver/1 datagram") + bytes([kind]) + struct.pack(">I", counter) + lp(body)).digest()
    print("hash", kind, counter, body.hex(), digest[:8].hex())
