"""Hashes, keys and signatures of the suite QUIVER-AINQ-RISTRETTO255-SHA512-v1: protocol §1.2, §2.3, §2.4, §22."""

import hashlib
import hmac
import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from . import ristretto
from .ristretto import BASE, ORDER, P, Refused

SUITE = b"QUIVER-AINQ-RISTRETTO255-SHA512-v1"


def u16(value):
    return struct.pack(">H", value)


def u32(value):
    return struct.pack(">I", value)


def u64(value):
    return struct.pack(">Q", value)


def lp(value):
    """§1.2: a four-byte length before a value."""
    return u32(len(value)) + value


class Reader:
    """Reads an encoding front to back, and refuses what is cut short or has more behind it."""

    def __init__(self, encoded):
        self.rest = encoded

    def take(self, length):
        if len(self.rest) < length:
            raise Refused("truncated")
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken

    def number(self, length):
        return int.from_bytes(self.take(length), "big")

    def lp(self, limit=1 << 20):
        length = self.number(4)
        if length > limit:
            raise Refused("too long")
        return self.take(length)

    def end(self):
        if self.rest:
            raise Refused("trailing bytes")


def xor(a, b):
    return bytes(i ^ j for i, j in zip(a, b, strict=True))


def same(a, b):
    return hmac.compare_digest(a, b)


def hash_of(label, *parts):
    """§1.2: H(label, …); who calls gives `lp` to parts of variable length."""
    return hashlib.sha256(lp(label.encode()) + b"".join(parts)).digest()


def prf(key, label, *parts):
    """§1.2: PRF(k, label, x)."""
    return hmac.new(key, lp(SUITE) + lp(label.encode()) + b"".join(parts), hashlib.sha256).digest()


def extract(salt, secret):
    """HKDF-Extract of RFC 5869 with SHA-256."""
    return hmac.new(salt, secret, hashlib.sha256).digest()


def seal(key, nonce, aad, plaintext):
    return ChaCha20Poly1305(key).encrypt(nonce, plaintext, aad)


def open_sealed(key, nonce, aad, ciphertext):
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, ciphertext, aad)
    except InvalidTag:
        raise Refused("the ciphertext does not open") from None


def hash_to_scalar(label, *parts):
    """§22.2: Hq."""
    return ristretto.scalar_from_wide(hashlib.sha512(b"".join(map(lp, (label.encode(), *parts)))).digest())


def frost_challenge(*parts):
    """§22.2: H2 of FROST(ristretto255, SHA-512)."""
    return ristretto.scalar_from_wide(hashlib.sha512(b"FROST-RISTRETTO255-SHA512-v1chal" + b"".join(parts)).digest())


def agree(scalar, point):
    """§22.3: T, the pairwise secret DH(k, Q)."""
    clamped = (8 * ristretto.normalised(scalar)).to_bytes(32, "little")
    s = int.from_bytes(point.encode(), "little")
    u = (s * s % P).to_bytes(32, "little")
    return X25519PrivateKey.from_private_bytes(clamped).exchange(X25519PublicKey.from_public_bytes(u))


def prove(secret, label, message, challenge):
    """A Schnorr signature (K, z) with z = k + c·x; the challenge is a function of K. The nonce is hedged: §2.4."""
    hedge = hmac.new(ristretto.scalar_encode(secret), os.urandom(32) + lp(label.encode()) + message, hashlib.sha512)
    k = ristretto.scalar_from_wide(hedge.digest())
    commitment = (k * BASE).encode()
    return commitment + ristretto.scalar_encode((k + challenge(commitment) * secret) % ORDER)


def proof_holds(signature, challenge, public):
    """z·P = K + c·X, for a point X."""
    if len(signature) != 64:
        raise Refused("not a signature")
    commitment, z = ristretto.decode(signature[:32]), ristretto.scalar_decode(signature[32:])
    return z * BASE == commitment + challenge(signature[:32]) * public
