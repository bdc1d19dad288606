#!/usr/bin/env python3
"""Makes the envelopes that tests/envelope/vectors.rs holds ours to, from docs/envelopes.md alone, with hashlib, hmac and the
package `cryptography`; no line of it is shared with the Rust code:

    python3 envelopes.py > envelopes.txt

The KEM is the toy of tests/envelope/toy.rs: C = lp(words) || 32 bytes of coins, K = H("toy", parameters, lp(C)).
"""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

CHUNK = 65536


def lp(data):
    return struct.pack(">I", len(data)) + data


def h(domain, data):
    return hashlib.sha256(lp(domain.encode()) + data).digest()


def prf(key, label, data):
    return hmac.new(key, lp(b"quiver/1 envelope") + lp(label.encode()) + data, hashlib.sha256).digest()


def toy_encapsulate(parameters, words, coins_seed):
    stream = Cipher(algorithms.ChaCha20(coins_seed, bytes(16)), None).encryptor()
    c = lp(words) + stream.update(bytes(32))
    return c, h("toy", parameters + lp(c))


def framed(body):
    return b"QvE\x01" + lp(body)


class Session:
    def __init__(self, seed, words, group, created, seconds, messages, secret):
        self.words, self.secret, self.number = words, secret, 0
        self.sender = h("toy public", secret) if secret else b""
        prelude = lp(b"toy") + lp(group) + struct.pack(">QII", created, seconds, messages)
        prelude += lp(self.sender) + struct.pack(">H", 32 if secret else 0)
        coins = prf(seed, "coins", lp(prelude) + lp(words))
        c, k = toy_encapsulate(bytes([9]) * 32, words, coins)
        mask = prf(k, "mask", h("quiver/1 envelope ciphertext", lp(c)))
        c2 = bytes(a ^ b for a, b in zip(seed, mask))
        self.opening = framed(b"\x01" + prelude + lp(c) + c2)
        self.id = h("quiver/1 envelope session", lp(self.sender) + lp(c))
        self.key = prf(seed, "session", h("quiver/1 envelope header", lp(self.opening)))

    def seal(self, data):
        number = struct.pack(">I", self.number)
        key, self.key = prf(self.key, "message", number), prf(self.key, "next", b"")
        header = self.opening if self.number == 0 else framed(b"\x02" + self.id + number)
        self.number += 1
        aead, aad = ChaCha20Poly1305(key), h("quiver/1 envelope header", lp(header))
        chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]

        def sealed(position, last, text):
            return aead.encrypt(bytes(7) + struct.pack(">IB", position, last), text, aad)

        body = b"".join(sealed(position, 0, chunk) for position, chunk in enumerate(chunks))
        trailer = b""
        if self.secret:
            content = h("quiver/1 envelope content", lp(header) + body)
            statement = lp(self.words) + lp(self.sender) + self.id + number + content
            trailer = h("toy signature", self.secret + lp(statement))
        return header + body + sealed(len(chunks), 1, trailer)


seed = bytes(range(32))
signed = Session(seed, b"scout medic", b"alpha", 1_800_000_000, 86400, 65536, bytes([1]) * 32)
print("opening =", signed.seal(b"go north").hex())
print("following =", signed.seal(b"").hex())
long = bytes(at * 31 % 251 for at in range(2 * CHUNK + 3))
print("digest of a long one =", h("vector", lp(signed.seal(long))).hex())
unsigned = Session(seed, b"scout medic", b"", 1_800_000_000, 0, 1, b"")
print("unsigned =", unsigned.seal(b"go north").hex())
