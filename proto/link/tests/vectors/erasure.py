"""Makes erasure.txt without the code under test: python3 erasure.py > erasure.txt

Multiplies by bits and inverts by search. Each line: message, bytes of a frame, parity frames; the frames.
Checks the table of parity in src/erasure.rs too, by summing binomials exactly.
"""

import hashlib
import struct
from fractions import Fraction
from math import comb


def product(a, b):
    total = 0
    while b:
        if b & 1:
            total ^= a
        a <<= 1
        if a & 0x100:
            a ^= 0x11D
        b >>= 1
    return total


INVERSE = {a: b for a in range(1, 256) for b in range(1, 256) if product(a, b) == 1}


def lp(data):
    return struct.pack(">I", len(data)) + data


def frames(message, mtu, parity):
    room = mtu - 8
    count = -(-len(message) // room)
    size = -(-len(message) // count)
    padded = message + bytes(count * size - len(message))
    pieces = [padded[i * size : (i + 1) * size] for i in range(count)]
    for row in range(parity):
        piece = bytearray(size)
        for column in range(count):
            factor = INVERSE[(255 - row) ^ column]
            for at in range(size):
                piece[at] ^= product(factor, pieces[column][at])
        pieces.append(bytes(piece))
    digest = hashlib.sha256(lp(b"quiver/1 coded broadcast") + lp(message)).digest()[:4]
    return [b"\x0a" + digest + struct.pack(">HB", len(message), index) + piece for index, piece in enumerate(pieces)]


def all_frames(count, loss):
    n = count
    while sum(comb(n, j) * (1 - loss) ** j * loss ** (n - j) for j in range(count, n + 1)) < Fraction(999, 1000):
        n += 1
    return n


for count, percent, expected in [(7, 10, 12), (7, 30, 19), (1, 10, 3), (2, 10, 5), (12, 10, 19), (12, 30, 28), (3, 30, 11)]:
    n = all_frames(count, Fraction(percent, 100))
    assert n == expected, (count, percent, n)

for length, mtu, parity in [(1, 9, 2), (20, 12, 3), (23, 16, 4), (200, 60, 12), (256, 10, 127)]:
    message = bytes((7 * i + i // 256 + length) & 0xFF for i in range(length))
    print(message.hex(), mtu, parity, *(frame.hex() for frame in frames(message, mtu, parity)))
