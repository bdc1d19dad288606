"""A KGC and a leader of a few lines, whose headers tests make wrong in one way each. Flat; one member, in slot 0."""

import os
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey, MLKEM1024PublicKey
from quiver_reference import ristretto, wire
from quiver_reference.edge import LEADER, Edge
from quiver_reference.header import FLAT, LEADER_SLOT, OPEN, REKEY, ZERO, Header
from quiver_reference.identity import Deployment, Identity, KeyPair
from quiver_reference.ristretto import BASE, Refused
from quiver_reference.second_factor import Kappa
from quiver_reference.suite import SUITE, agree, extract, frost_challenge, hash_of, lp, prf, prove, u32, u64, xor
from quiver_reference.traffic import Channel

NOW, LATER = 1_000_000, 2_000_000
GROUP = "alpha"
PEER = "the leader"


class Kgc:
    """The KGC, which also signs statements."""

    def __init__(self, kem=0):
        self.secret = ristretto.random_scalar()
        self.deployment = Deployment("alps", (self.secret * BASE).encode(), kem)

    def enrol(self, name, leads=None, ordinal=0, not_after=LATER):
        """§2.3: a partial key is a signature over lp(D) ‖ P; the drone's key pair."""
        while True:
            identity = Identity(os.urandom(16), name, leads, ordinal, (GROUP,), not_after)
            x = ristretto.random_scalar()
            body = lp(identity.encode()) + (x * BASE).encode()
            signature = self.sign("identity", body)
            s = ristretto.scalar_decode(signature[32:])
            try:
                return KeyPair.from_partial(self.deployment, identity, signature[:32], s, x)
            except Refused:
                # A sum without a normal form, once in 2^125.
                continue

    def sign(self, purpose, body):
        message = self.deployment.tagged(purpose, body)
        return prove(self.secret, purpose, message,
                     lambda r: frost_challenge(r, self.deployment.master, message))

    def revocations(self, number, leaders=(), edges=()):
        """§12.3: a list, signed."""
        def entries(serials):
            return u32(len(serials)) + b"".join(serial + u64(LATER) for serial in sorted(serials))

        rest = entries(edges) if edges else b""
        head = u64(number) + u64(NOW) + u64(LATER) + entries(leaders) + hash_of("quiver/1 revoked edges", lp(rest))
        return lp(head) + self.sign("revocation", head) + rest


@dataclass
class Made:
    """An epoch that a leader has made."""

    fields: dict
    header: Header
    key: bytes


class Leader:
    """A leader under flat."""

    def __init__(self, kgc, name="leader-0", ordinal=0, leads=GROUP, not_after=LATER):
        self.kgc, self.deployment = kgc, kgc.deployment
        self.keypair = kgc.enrol(name, leads, ordinal, not_after)
        self.ordinal, self.chain, self.auth = ordinal, None, None
        # §24: how many terms it has opened, and κ with the member.
        self.terms, self.kappa = 1, None

    def pair_up(self, fields, drone, q, point):
        """§14: the pair with the member in slot 0."""
        secret = ristretto.random_scalar()
        fields["point"] = (secret * BASE).encode()
        context = hash_of(
            "quiver/1 pair", lp(SUITE), self.deployment.master, lp(GROUP.encode()), u64(fields["term"]),
            u64(fields["counter"]), fields["point"], self.keypair.public.encode(), drone.encode(), u32(0), u64(q),
            point)
        secret = agree(secret, drone.implicit(self.deployment) + ristretto.decode(point))
        self.chain = self.kappa.start(context, secret) if self.deployment.kem else extract(context, secret)
        self.auth = prf(self.chain, "auth")

    def encapsulate(self, key, drone):
        """§24.2: ciphertext and κ, for a drone of this handle; the end of it that Exchange is not."""
        scheme = {1: MLKEM768PublicKey, 2: MLKEM1024PublicKey}[self.deployment.kem]
        shared, ciphertext = scheme.from_public_bytes(key).encapsulate()
        context = hash_of("quiver/1 kem", lp(SUITE), self.deployment.fingerprint, lp(GROUP.encode()),
                          self.keypair.public.handle(), drone, bytes([self.deployment.kem]),
                          hash_of("quiver/1 kem exchange", lp(key), lp(ciphertext)))
        return ciphertext, Kappa(extract(context, shared), self.deployment.kem, self.terms, NOW)

    def open(self, term, drone, q, point):
        """§24.3: an opening with a member's spare point: its terms are one more, and κ steps with them."""
        self.terms += 1
        if self.kappa:
            self.kappa = self.kappa.at(self.keypair.public.handle(), self.terms) or self.kappa
        fields = self.core(term, 1)
        self.pair_up(fields, drone, q, point)
        return self.finish(fields)

    def core(self, term, counter, prev=ZERO, **more):
        kem = self.deployment.kem
        return {
            "group": GROUP, "leader": self.keypair.public.encode(), "term": term, "counter": counter, "prev": prev,
            "nonce": os.urandom(32), "issued_at": NOW, "valid_until": LATER, "strategy": FLAT,
            "kind": OPEN if counter == 1 else REKEY, "point": b"", "height": 0, "removed": b"", "added": b"",
            "absent": b"", "roster_hash": ZERO, "revocation_number": 0, "entries_root": ZERO, "tag": ZERO,
            "signature": bytes(64), "changes": b"", "kem": kem,
            "kem_terms": self.terms if kem else 0, **more,
        }

    def finish(self, fields, key=None, tag=None, signer=None):
        """Tag and signature: §7.1."""
        key = key or os.urandom(32)
        header = Header.from_wire(self.deployment, fields)
        fields["tag"] = tag or prf(key, "confirm", header.d0, ZERO)
        header = Header.from_wire(self.deployment, fields)
        fields["signature"] = (signer or self.keypair).sign(self.deployment, "header", header.digest)
        return Made(fields, Header.from_wire(self.deployment, fields), key)

    def entry(self, made, q=None, step=True):
        """§7.1: C, and the step after it."""
        entry = {"slot": 0, "wrap": xor(made.key, prf(self.chain, "wrap", made.header.d0, u32(0)))}
        if q is not None:
            entry["q"] = q
        if step:
            self.chain = prf(self.chain, "step")
        return entry

    def say(self, made, text, channel="chat", keypair=None, slot=LEADER_SLOT):
        return Channel(self.deployment, made.header, made.key, slot, 1).seal(channel, text, keypair or self.keypair)


class Group:
    """An edge that has joined the group of a leader."""

    def __init__(self, kem=0):
        self.kgc = Kgc(kem)
        self.leader = Leader(self.kgc)
        self.drone = self.kgc.enrol("edge-1")
        self.edge = Edge(self.kgc.deployment, GROUP, state={"key": {
            "public": self.drone.public.encode().hex(), "secret": ristretto.scalar_encode(self.drone.secret).hex()}})
        self.edge.connected(PEER, LEADER, NOW)
        self.made = self.join()

    def give(self, kind, by_gossip=False, now=NOW, **fields):
        """Hands the edge a message; the events that follow."""
        self.edge.events = []
        self.edge.receive(now, PEER, wire.encode(self.kgc.deployment, kind, fields), by_gossip)
        return self.edge.events

    def sent(self, kind):
        """The fields of the messages of a kind that the edge has sent since it was asked last."""
        sent = [wire.decode(self.kgc.deployment, message) for _, message in self.edge.outbox]
        self.edge.outbox = []
        return [fields for name, fields in sent if name == kind]

    def challenge(self, leader=None, **more):
        """Challenges the edge that has sent a hello; the request that follows, and the statement that it signs."""
        hello = self.sent("join_hello")[0]
        leader = leader or self.leader
        term = {"kem": {"set": self.kgc.deployment.kem, "g": leader.terms}} if self.kgc.deployment.kem else {}
        self.give("join_challenge", nonce=hello["nonce"], challenge=bytes(40),
                  leader=leader.keypair.public.encode(), revocation_number=0, **term | more)
        requests = self.sent("join_request")
        return hello, requests[0] if requests else None

    def join(self):
        """§6.1, as the leader."""
        hello, request = self.challenge()
        leader = self.leader.keypair.public.encode()
        drone, spare = self.drone.public, request["spare"]
        message = (lp(GROUP.encode()) + lp(leader) + lp(drone.encode()) + bytes(40) + hello["nonce"]
                   + request["ephemeral"] + u64(spare["q"]) + spare["point"] + lp(spare["signature"]))
        if self.kgc.deployment.kem:
            # §24.4.
            key = request["kem"]["key"]
            message += bytes([self.kgc.deployment.kem, 1]) + lp(key)
            ciphertext, self.leader.kappa = self.leader.encapsulate(key, drone.handle())
            term = {"set": self.kgc.deployment.kem, "g": self.leader.terms}
            self.give("join_ciphertext", nonce=hello["nonce"], term=term, ciphertext=ciphertext)
        drone.verify(self.kgc.deployment, "join", message, request["signature"])
        message = lp(GROUP.encode()) + drone.encode() + u64(spare["q"]) + spare["point"]
        drone.verify(self.kgc.deployment, "spare", message, spare["signature"])
        fields = self.leader.core(1 << 16, 2, added=bytes([0, 1]))
        self.leader.pair_up(fields, drone, 0, request["ephemeral"])
        made = self.leader.finish(fields)
        self.give("welcome", nonce=hello["nonce"], header=fields, entry=self.leader.entry(made))
        assert self.edge.can_send(), self.edge.events
        return made

    def rekey(self, **more):
        """The fields of the epoch after the newest one."""
        header = self.made.header
        return self.leader.core(header.term, header.counter + 1, header.digest, **more)
