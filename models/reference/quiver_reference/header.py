"""Headers of epochs: their canonical bytes, digests and verification. Protocol §7.1, §7.3, §22.7."""

from dataclasses import dataclass

from . import ristretto
from .identity import PublicKey, name
from .ristretto import Refused
from .second_factor import MAX_TERMS
from .suite import SUITE, Reader, hash_of, lp, u32, u64
from .wire import read_shortest

FLAT, TREE = 1, 4
OPEN, REKEY = 1, 2
MAX_SLOTS = 1 << 20
LEADER_SLOT = MAX_SLOTS
ZERO = bytes(32)


def runs_from_wire(encoded):
    """§22.7: the slots since the end of the run before, then the run's length, as varints."""
    reader, runs, end = Reader(encoded), [], 0
    while reader.rest:
        gap, length = read_shortest(reader), read_shortest(reader)
        if length == 0 or (runs and gap == 0) or end + gap + length > MAX_SLOTS or len(runs) == 1 << 17:
            raise Refused("slot runs")
        runs.append((end + gap, length))
        end += gap + length
    return runs


def runs_encoded(runs):
    """§7.1: the number of runs, then first slot and length of each."""
    return u32(len(runs)) + b"".join(u32(start) + u32(length) for start, length in runs)


def contains(runs, slot):
    return any(start <= slot < start + length for start, length in runs)


def completed(before, digest, short, wraps):
    """§7.6: the fields of a header in its short form, with those of the epoch before, its D, and the wraps.

    None if it builds on another epoch.
    """
    follows = short["term"] == before["term"] and short["counter"] == before["counter"] + 1
    if not follows or short["prev"] != digest[:8] or before["strategy"] != TREE:
        return None
    own = {name: short[name] for name in ("roster_hash", "revocation_number") if short[name]}
    if any(before[name] == value for name, value in own.items()):
        raise Refused("a field of a short header that is as before")
    same = {name: short[name] for name in ("counter", "nonce", "issued_at", "point", "removed", "added", "changes",
                                           "tag", "signature")}
    return before | same | own | {
        "prev": digest, "valid_until": short["issued_at"] + short["lifetime"], "kind": REKEY, "absent": b"",
        "height": wraps.height, "entries_root": wraps.root(),
    }


@dataclass(frozen=True)
class Header:
    """An epoch, as its leader signed it."""

    group: str
    leader: PublicKey
    term: int
    counter: int
    prev: bytes
    valid_until: int
    strategy: int
    kind: int
    point: bytes
    changes: bytes
    height: int
    removed: list
    added: list
    absent: list
    revocation_number: int
    # §24.3: set and g of the second factor; 0 without one.
    kem: int
    kem_terms: int
    entries_root: bytes
    tag: bytes
    signature: bytes
    d0: bytes
    digest: bytes

    @classmethod
    def from_wire(cls, deployment, wire):
        """§7.3, 1: the shape of it, from a message's fields."""
        leader, group = PublicKey.decode(wire["leader"]), name(wire["group"].encode())
        point, changes, tag, root = wire["point"], wire["changes"], wire["tag"], wire["entries_root"]
        prev = wire["prev"]
        if any(len(x) != 32 for x in (prev, wire["nonce"], root, tag, wire["roster_hash"])) or {
            len(point), len(changes)
        } - {0, 32}:
            raise Refused("a header's lengths")
        removed, added, absent = (runs_from_wire(wire[which]) for which in ("removed", "added", "absent"))
        kem, terms = wire["kem"], wire["kem_terms"]
        if kem not in (0, 1, 2) or (not 1 <= terms <= MAX_TERMS if kem else terms):
            raise Refused("a header's second factor")
        there = bool(point) | bool(changes) << 1 | bool(kem) << 2
        second_factor = bytes([kem]) + u64(terms) if kem else b""
        core = (
            lp(SUITE) + deployment.fingerprint + lp(group.encode()) + leader.encode()
            + u64(wire["term"]) + u64(wire["counter"]) + prev + wire["nonce"]
            + u64(wire["issued_at"]) + u64(wire["valid_until"])
            + bytes([wire["strategy"], wire["kind"], there]) + point + changes + second_factor
            + bytes([wire["height"]])
            + runs_encoded(removed) + runs_encoded(added) + runs_encoded(absent)
            + wire["roster_hash"] + u64(wire["revocation_number"])
        )
        d0 = hash_of("quiver/1 core", core)
        header = cls(
            group, leader, wire["term"], wire["counter"], prev, wire["valid_until"], wire["strategy"], wire["kind"],
            point, changes, wire["height"], removed, added, absent, wire["revocation_number"], kem, terms, root, tag,
            wire["signature"], d0, hash_of("quiver/1 header", d0, root, tag),
        )
        header.check_shape(wire["issued_at"])
        return header

    def check_shape(self, issued_at):
        opens, tree = self.kind == OPEN, self.strategy == TREE
        fits = (
            self.kind in (OPEN, REKEY) and self.strategy in (FLAT, TREE)
            and self.round <= 1 << 46 and self.counter <= 1 << 48 and issued_at < self.valid_until
            and (1 <= self.height <= 20 if tree else self.height == 0)
            and (tree or self.entries_root == ZERO)
            and (self.counter == 1 and not self.removed and not self.added if opens else
                 self.counter > 1 and not self.absent and (bool(self.changes) or bool(self.point) == bool(self.added)))
            and (tree and not opens and not self.removed and not self.added if self.changes else
                 not tree or len(self.removed) + len(self.added) <= 32)
        )
        if not fits:
            raise Refused("a header's shape")

    @property
    def epoch(self):
        return self.term, self.counter

    @property
    def round(self):
        return self.term >> 16

    def adds(self, slot):
        """Whether the holder of a slot gets a new pair with the leader."""
        if self.kind == OPEN:
            return not contains(self.absent, slot)
        return bool(self.changes) or contains(self.added, slot)

    def verify_signer(self, deployment):
        """§7.3, 3: the signature, and that the signer leads this group under the term's ordinal."""
        self.leader.verify(deployment, "header", self.digest, self.signature)
        identity = self.leader.identity
        if identity.leads != self.group or identity.ordinal != self.term & 0xFFFF:
            raise Refused("the signer leads another group, or under another ordinal")

    def verify(self, deployment, group, newest, revoked, now):
        """§7.3, 1 to 4, in this order. `newest` is the newest epoch of the group that was ever accepted."""
        if self.group != group:
            raise Refused("another group")
        if self.kem != deployment.kem:
            # §24.6: whoever signed it.
            raise Refused("another second factor than the deployment says")
        if self.epoch <= newest:
            raise Refused("stale")
        if newest != (0, 0) and self.round - (newest[0] >> 16) > 1 << 20:
            raise Refused("too many rounds ahead")
        self.verify_signer(deployment)
        if self.leader.identity.serial in revoked:
            raise Refused("the leader is revoked or refused")
        if now >= self.valid_until or now >= self.leader.identity.not_after:
            raise Refused("expired")
        if self.point:
            ristretto.decode(self.point)
