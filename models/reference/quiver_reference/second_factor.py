"""The second factor of pairwise secrets: exchanges of ML-KEM, and κ of a drone and a leader. Protocol §24.

ML-KEM itself is that of the package `cryptography`, which is OpenSSL's.
"""

import os
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM1024PrivateKey

from .ristretto import Refused
from .suite import SUITE, extract, hash_of, lp, prf, u64

# §24: what deployments say, as the number of a parameter set; 0 is none.
SETS = {"none": 0, "ml-kem-768": 1, "ml-kem-1024": 2}
SCHEMES = {1: (MLKEM768PrivateKey, 1088), 2: (MLKEM1024PrivateKey, 1568)}
# §24.3, §24.8, §24.4: steps at once, terms, leaders, and ciphertexts in an attempt; §24.5: seconds until it is renewed.
MAX_STEPS, MAX_TERMS, MAX_LEADERS, MAX_CIPHERTEXTS, LIFETIME = 4096, 1 << 48, 16, 4, 30 * 86_400


@dataclass(frozen=True)
class Kappa:
    """κ[g], its set, and when it was made."""

    key: bytes
    set: int
    g: int
    made: float

    def at(self, leader, g):
        """§24.3: κ in a term with this g of the leader with this handle; None if it does not lead there."""
        if not 0 <= g - self.g <= MAX_STEPS:
            return None
        key = self.key
        for count in range(self.g, g):
            key = prf(key, "kem step", leader, u64(count))
        return replace(self, key=key, g=g)

    def tag(self):
        """§24.5: what names it."""
        return prf(self.key, "kem tag")[:16]

    def start(self, context, secret):
        """§24.3: W[b] of T and κ."""
        salt = hash_of("quiver/1 kem pair", context, bytes([self.set]), u64(self.g))
        return extract(salt, lp(secret) + lp(self.key))

    def stored(self):
        return {"key": self.key.hex(), "set": self.set, "g": self.g, "made": self.made}

    @classmethod
    def restored(cls, stored):
        return cls(bytes.fromhex(stored["key"]), stored["set"], stored["g"], stored["made"])


@dataclass
class Exchange:
    """§24.2: the drone's end of an exchange with the leader of this handle. A new one has a new key pair."""

    leader: bytes
    set: int
    seed: bytes = field(default_factory=lambda: os.urandom(64))
    # κ of each ciphertext that came, by its bytes.
    found: dict = field(default_factory=dict)

    def private(self):
        return SCHEMES[self.set][0].from_seed_bytes(self.seed)

    def key(self):
        """ek."""
        return self.private().public_key().public_bytes_raw()

    def take(self, fingerprint, group, drone, term, ciphertext, now):
        """§24.4: nobody signs a ciphertext, so several are tried."""
        if term.get("set") != self.set or not 1 <= term["g"] <= MAX_TERMS or len(ciphertext) != SCHEMES[self.set][1]:
            raise Refused("a ciphertext of another set, or of no term")
        if ciphertext in self.found or len(self.found) == MAX_CIPHERTEXTS:
            return
        shared = self.private().decapsulate(ciphertext)
        exchange = hash_of("quiver/1 kem exchange", lp(self.key()), lp(ciphertext))
        context = hash_of("quiver/1 kem", lp(SUITE), fingerprint, lp(group.encode()), self.leader, drone,
                          bytes([self.set]), exchange)
        self.found[ciphertext] = Kappa(extract(context, shared), self.set, term["g"], now)
