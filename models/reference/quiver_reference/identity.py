"""Deployments, identities, keys, tokens, statements of the KGC: protocol §1.1, §2, §3.2, §12.3, §22.4 to §22.6."""

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property

from . import ristretto
from .ristretto import BASE, ORDER, Refused
from .second_factor import SETS
from .suite import SUITE, Reader, frost_challenge, hash_of, hash_to_scalar, lp, proof_holds, prove, same, u16, u32, u64

EDGE = "edge"


def name(raw):
    text = raw.decode("ascii", "replace")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", text):
        raise Refused("not a name")
    return text


@dataclass(frozen=True)
class Deployment:
    """§1.1: suite, name, and the KGC's public key; §24: the set of the second factor, 0 without one."""

    name: str
    master: bytes
    kem: int = 0

    @classmethod
    def read(cls, path):
        with open(path, "rb") as file:
            said = tomllib.load(file)
        kem = SETS[said.get("kem", "none")]
        deployment = cls(said["deployment"], bytes.fromhex(said["master"]), kem)
        if said["suite"] != SUITE.decode() or said["fingerprint"] != deployment.fingerprint.hex():
            raise Refused("the deployment's file contradicts itself")
        return deployment

    @cached_property
    def point(self):
        return ristretto.decode(self.master)

    @cached_property
    def fingerprint(self):
        return hash_of("quiver/1 deployment", lp(SUITE), lp(self.name.encode()), self.master)

    def tagged(self, purpose, body):
        """§2.3: what the KGC signs."""
        return lp(SUITE) + lp(self.name.encode()) + lp(purpose.encode()) + body

    def verify_statement(self, purpose, body, signature):
        message = self.tagged(purpose, body)
        if not proof_holds(signature, lambda r: frost_challenge(r, self.master, message), self.point):
            raise Refused(f"the KGC did not sign this ({purpose})")


@dataclass(frozen=True)
class Identity:
    """§2.1: D. `leads` is None, or the group that it may lead; then it has an ordinal."""

    serial: bytes
    name: str
    leads: str | None
    ordinal: int
    groups: tuple
    not_after: int

    @classmethod
    def read(cls, reader):
        """Serial, then what a token grants."""
        serial, called = reader.take(16), name(reader.lp())
        role = reader.number(1)
        if role > 1:
            raise Refused("no such role")
        leads, ordinal = (name(reader.lp()), reader.number(2)) if role == 1 else (None, 0)
        count = reader.number(4)
        if count > 16:
            raise Refused("too many groups")
        groups = tuple(name(reader.lp()) for _ in range(count))
        if sorted(set(groups)) != list(groups):
            raise Refused("groups must ascend")
        return cls(serial, called, leads, ordinal, groups, reader.number(8))

    def encode(self):
        role = b"\0" if self.leads is None else b"\1" + lp(self.leads.encode()) + u16(self.ordinal)
        groups = u32(len(self.groups)) + b"".join(lp(group.encode()) for group in self.groups)
        return self.serial + lp(self.name.encode()) + role + groups + u64(self.not_after)


@dataclass(frozen=True)
class PublicKey:
    """§2.1: lp(D) ‖ R ‖ P, of which everybody computes Y."""

    identity: Identity
    r: bytes
    p: bytes

    @classmethod
    def decode(cls, encoded):
        reader = Reader(encoded)
        inner = Reader(reader.lp(2048))
        identity = Identity.read(inner)
        inner.end()
        key = cls(identity, reader.take(32), reader.take(32))
        reader.end()
        return key

    def encode(self):
        return lp(self.identity.encode()) + self.r + self.p

    def handle(self):
        """§2.2, §14."""
        return hash_of("quiver/1 handle", lp(SUITE), self.encode())

    def implicit(self, deployment):
        """§1.2: Y = R + H0·P_pub + P, where H0 is the challenge of the KGC's signature (§2.3)."""
        message = deployment.tagged("identity", lp(self.identity.encode()) + self.p)
        h0 = frost_challenge(self.r, deployment.master, message)
        y = ristretto.decode(self.r) + h0 * deployment.point + ristretto.decode(self.p)
        if y == ristretto.IDENTITY:
            raise Refused("Y is the identity")
        return y

    def challenge(self, deployment, label, message):
        """§22.2: of a signature by this drone."""
        y = self.implicit(deployment).encode()
        parts = SUITE, label.encode(), deployment.master, self.identity.encode(), self.r, self.p, y
        return lambda k: hash_to_scalar("quiver/1 sig", *parts, k, message)

    def verify(self, deployment, label, message, signature):
        if not proof_holds(signature, self.challenge(deployment, label, message), self.implicit(deployment)):
            raise Refused(f"{self.identity.name} did not sign this ({label})")


@dataclass(frozen=True)
class KeyPair:
    """y and its public key."""

    public: PublicKey
    secret: int

    @classmethod
    def from_partial(cls, deployment, identity, r, s, x):
        """§2.3, §3.5: verification is the only way to a usable key."""
        public = PublicKey(identity, r, (x * BASE).encode())
        y = (s + x) % ORDER
        if y * BASE != public.implicit(deployment):
            raise Refused("the partial key is wrong")
        ristretto.normalised(y)
        return cls(public, y)

    def sign(self, deployment, label, message):
        return prove(self.secret, label, message, self.public.challenge(deployment, label, message))


@dataclass(frozen=True)
class Token:
    """§3.2, with the secret tsk. `encoded` is lp(statement) ‖ the operator's signature."""

    identity: Identity
    statement: bytes
    encoded: bytes
    tpk: bytes
    tsk: int

    @classmethod
    def read(cls, path, deployment):
        """§22.6: one line of text."""
        with open(path, encoding="ascii") as file:
            word, suite, digits, checksum = file.read().split()
        raw = bytes.fromhex(digits)
        expected = hash_of("quiver/1 armour", lp(word.encode()), lp(suite.encode()), lp(raw))[:4].hex()
        if word != "QUIVER-TOKEN" or suite != SUITE.decode() or checksum != expected:
            raise Refused("not a token of this suite, or a garbled one")
        outer = Reader(raw)
        encoded, tsk = outer.lp(), ristretto.scalar_decode(outer.take(32))
        outer.end()
        reader = Reader(encoded)
        statement = reader.lp()
        reader.take(64)
        reader.end()
        reader = Reader(statement)
        if reader.lp() != SUITE:
            raise Refused("another suite")
        identity = Identity.read(reader)
        reader.number(8)
        master, tpk = reader.take(32), reader.take(32)
        reader.end()
        if master != deployment.master or (tsk * BASE).encode() != tpk:
            raise Refused("the token is another deployment's, or its secret another token's")
        return cls(identity, statement, encoded, tpk, tsk)


@dataclass(frozen=True)
class RevocationList:
    """§12.3."""

    number: int = 0
    serials: frozenset = frozenset()

    @classmethod
    def verify(cls, deployment, encoded):
        reader = Reader(encoded)
        head, signature, edges = reader.lp(), reader.take(64), reader.rest
        deployment.verify_statement("revocation", head, signature)
        reader = Reader(head)
        number = reader.number(8)
        # When it was issued, and when the next one is due (§12.6), which nothing here asks.
        reader.take(16)
        serials = cls.entries(reader)
        digest = reader.take(32)
        reader.end()
        if not same(hash_of("quiver/1 revoked edges", lp(edges)), digest):
            raise Refused("a revocation list without its edges, or with others")
        if edges:
            reader = Reader(edges)
            serials += cls.entries(reader)
            reader.end()
        return cls(number, frozenset(serials))

    @staticmethod
    def entries(reader):
        return [Reader(reader.take(24)).take(16) for _ in range(reader.number(4))]
