"""An edge: enrols, joins, follows epochs under both strategies, catches up, leaves, and exchanges messages.

It knows no socket and no clock: whoever drives it says what came from which peer and what time it is, and sends what
waits in `outbox` once `state` is stored (protocol §15). Peers are whatever the driver names them by.
"""

import os
import struct
from dataclasses import dataclass, field

from . import ristretto, tree, wire
from .header import MAX_SLOTS, OPEN, Header, completed, contains
from .identity import KeyPair, PublicKey, RevocationList
from .ristretto import BASE, ORDER, Refused
from .second_factor import LIFETIME, MAX_LEADERS, Exchange, Kappa
from .suite import (
    SUITE, Reader, agree, extract, hash_of, hash_to_scalar, lp, open_sealed, prf, prove, same, u16, u32, u64, xor,
)
from .traffic import Channel

KGC, LEADER = "kgc", "leader"
EVERYBODY = None
# Seconds: until a join is asked for again (§6.3), a question (§11), a spare point; for which a used pair stays (§9.3),
# and for which the former key opens what was on its way (§13.10).
JOIN_RETRY, MAX_JOIN_RETRY, ASK_RETRY, SPARE_RETRY, SPENT_STAYS, OVERLAP = 15, 120, 1, 2, 60, 2
MAX_PAYLOAD = 65_536
# §24.7: seconds until a deputy is asked, and for how often; doubled from time to time.
AHEAD_RETRY, AHEAD_TRIES = 2, 5


@dataclass
class Pair:
    """§9.3: a spare pair."""

    q: int
    secret: int
    # When it was used, if it was.
    spent: float | None = None

    @property
    def point(self):
        return (self.secret * BASE).encode()


@dataclass
class Ratchet:
    """§14: W[u], u and A of a pair."""

    chain: bytes
    u: int
    auth: bytes

    @classmethod
    def derive(cls, secret, context, counter, kappa=None):
        chain = kappa.start(context, secret) if kappa else extract(context, secret)
        return cls(chain, counter, prf(chain, "auth"))

    def at(self, u):
        """The ratchet at u, which is never behind, and at most 2^16 ahead: §8.4."""
        if not 0 <= u - self.u <= 1 << 16:
            raise Refused("a key of the ratchet that is erased, or too far ahead")
        chain = self.chain
        for _ in range(u - self.u):
            chain = prf(chain, "step")
        return Ratchet(chain, u, self.auth)


@dataclass
class Membership:
    """What a member holds. K_g and path are lost with a restart."""

    slot: int
    header: Header
    fields: dict
    ratchet: Ratchet
    key: bytes | None = None
    path: tree.Path | None = None
    channel: Channel | None = None
    former: tuple | None = None


@dataclass
class Ahead:
    """§24.7: questions to a leader that does not lead, for a second factor with it."""

    again: float
    tries: int = 0
    nonce: bytes = b""
    exchange: Exchange | None = None


@dataclass
class Question:
    """A catch-up request under way."""

    number: bytes
    held: bytes
    again: float
    tries: int = 1


def hexed(value):
    """What is stored of a message's fields."""
    return wire.encode_fields(wire.HEADER, value).hex()


@dataclass
class Edge:
    """An edge of one group. `state` is what must be stored before anything in `outbox` leaves."""

    deployment: object
    group: str
    token: object = None
    state: dict = field(default_factory=dict)

    def __post_init__(self):
        self.outbox, self.events, self.peers = [], [], {}
        self.keypair = self.member = self.question = self.joining = self.enrolling = self.cookie_nonce = None
        self.synced, self.leaving, self.wants_in = False, False, True
        self.asked, self.spare_again, self.count, self.join_tries, self.held_at_start = set(), 0, 0, 0, None
        self.revocations = RevocationList()
        # §13.2: raised before the first message of a start; stored with whatever leaves next.
        self.state["boot_no"] = self.state.get("boot_no", 0) + 1
        # §24: κ by the leader's handle; whether the leader lost its own; questions for it by the peer, None when answered.
        self.kappas, self.renews, self.ahead = {}, False, {}
        self.pairs, self.refused = [], {bytes.fromhex(serial) for serial in self.state.get("refused", [])}
        self.restore()

    # What is stored ------------------------------------------------------------------------------------------------

    def restore(self):
        state = self.state
        if "key" in state:
            public = PublicKey.decode(bytes.fromhex(state["key"]["public"]))
            self.keypair = KeyPair(public, ristretto.scalar_decode(bytes.fromhex(state["key"]["secret"])))
        if "revocations" in state:
            self.revocations = RevocationList.verify(self.deployment, bytes.fromhex(state["revocations"]))
        self.pairs = [Pair(pair["q"], int(pair["secret"], 16)) for pair in state.get("pairs", [])]
        # §24.8: κ of another set than the deployment says is forgotten, and a membership of another ends (§24.6).
        kept = {bytes.fromhex(leader): Kappa.restored(kappa) for leader, kappa in state.get("kappas", {}).items()}
        self.kappas = {leader: kappa for leader, kappa in kept.items() if kappa.set == self.deployment.kem}
        held = state.get("membership")
        if held and wire.decode_fields(wire.HEADER, bytes.fromhex(held["header"]))["kem"] != self.deployment.kem:
            self.end("rejoin")
        elif held:
            fields = wire.decode_fields(wire.HEADER, bytes.fromhex(held["header"]))
            header = Header.from_wire(self.deployment, fields)
            ratchet = Ratchet(bytes.fromhex(held["chain"]), held["u"], bytes.fromhex(held["auth"]))
            self.member = Membership(held["slot"], header, fields, ratchet)
            # §13.5: of this epoch K_g is not taken back.
            self.held_at_start = header.digest

    def store(self):
        """Puts into `state` what lives across a restart: §15."""
        state = self.state
        state["refused"] = [serial.hex() for serial in sorted(self.refused)]
        state["kappas"] = {leader.hex(): kappa.stored() for leader, kappa in self.kappas.items()}
        state["pairs"] = [{"q": pair.q, "secret": f"{pair.secret:x}"} for pair in self.pairs]
        member = self.member
        if member is None:
            state.pop("membership", None)
            return
        state["membership"] = {
            "slot": member.slot, "header": hexed(member.fields), "chain": member.ratchet.chain.hex(),
            "u": member.ratchet.u, "auth": member.ratchet.auth.hex(),
        }

    def newest(self):
        """§7.3: the newest epoch of this group that was ever accepted."""
        return tuple(self.state.get("newest", {}).get(self.group, (0, 0)))

    def revoked(self):
        return self.revocations.serials | self.refused

    def event(self, what, **more):
        self.events.append({"event": what, **more})

    def send(self, peer, kind, **fields):
        self.outbox.append((peer, wire.encode(self.deployment, kind, fields)))

    def leaders(self):
        return [peer for peer, role in self.peers.items() if role == LEADER]

    # What comes ----------------------------------------------------------------------------------------------------

    def connected(self, peer, role, now):
        self.peers[peer] = role
        if role == KGC:
            self.greet_kgc(peer)
        elif self.member:
            # §11.1: a question comes first, and proves who is there. The hint for other leaders comes later (§10.5).
            if not self.question:
                self.ask(now, peer)
            self.spare_again = self.spare_again or now + SPARE_RETRY
            self.ahead.setdefault(peer, Ahead(now + AHEAD_RETRY))
        else:
            self.greet_leader(peer)

    def disconnected(self, peer):
        self.peers.pop(peer, None)
        self.ahead.pop(peer, None)
        if self.joining and self.joining["peer"] == peer:
            self.joining = None

    def receive(self, now, peer, message, by_gossip=False):
        """Handles what came; what is not as it must be changes nothing."""
        try:
            kind, fields = wire.decode(self.deployment, message)
            # §13.6: what is taken from the group's topic.
            if by_gossip and kind not in ("rekey", "short_rekey", "eviction_notice", "revocation_list", "equivocation_proof",
                                          "group_message"):
                return
            handler = getattr(self, f"on_{kind}", None)
            if handler:
                handler(now, peer, fields, by_gossip)
        except (ValueError, KeyError, OverflowError, struct.error) as reason:
            # `Refused`, or a number or a field that the message must have and does not.
            self.event("refused", kind=wire_kind(message, self.deployment), reason=str(reason), peer=peer)

    def tick(self, now):
        """Does what is due: asks again, erases what is spent."""
        if self.member is None:
            if self.joining and now >= self.joining["again"]:
                self.joining = None
            if self.joining is None and self.leaders():
                self.greet_leader(self.next_leader())
            return
        member = self.member
        if self.question and now >= self.question.again and self.leaders():
            self.ask(now, self.next_leader())
        expired = now >= member.header.valid_until
        if expired and member.key:
            member.key = member.channel = None
            self.held_at_start = member.header.digest
        if (expired or not self.synced) and not self.question and self.leaders():
            self.ask(now, self.next_leader())
        if member.former and now >= member.former[1]:
            member.former = None
        before = len(self.pairs)
        self.pairs = [pair for pair in self.pairs if pair.spent is None or now < pair.spent + SPENT_STAYS]
        if len(self.pairs) != before:
            self.store()
        if self.spare_again and now >= self.spare_again:
            self.publish_spares(now)
        if self.deployment.kem:
            self.ask_ahead(now)

    def next_leader(self):
        """The leaders in turns."""
        leaders = self.leaders()
        left = [peer for peer in leaders if peer not in self.asked]
        if not left:
            self.asked, left = set(), leaders
        self.asked.add(left[0])
        return left[0]

    def on_refusal(self, now, peer, fields, by_gossip):
        number = fields["reason"]
        reason = wire.REASONS[number] if number < len(wire.REASONS) else "unspecified"
        self.event("refusal", reason=reason, peer=peer)
        if reason == "not ready" and self.member:
            # §10.5: a leader that does not lead is sent the newest header that the edge holds.
            self.send(peer, "rekey", header=self.member.fields)
        if reason == "rejoin" and self.question and fields["reference"] == self.question.number:
            self.end("rejoin")
        if reason in ("no second factor", "ml-kem-768", "ml-kem-1024"):
            self.event("another second factor", own=self.deployment.kem, leader=reason, peer=peer)
        if self.joining and self.joining["peer"] == peer:
            # §24.5: κ stays until another takes its place.
            self.renews |= reason == "second factor lost" and fields["reference"] == self.joining["nonce"]
            # Nobody authenticates a refusal, so it only makes the edge ask another, and later.
            self.joining["again"] = min(self.joining["again"], now + max(1, fields["retry_after_ms"] / 1000))

    # Enrolment, §3 -------------------------------------------------------------------------------------------------

    def greet_kgc(self, peer):
        if self.keypair is None:
            self.cookie_nonce = os.urandom(16)
            self.send(peer, "enrol_hello", nonce=self.cookie_nonce)

    def on_enrol_cookie(self, now, peer, fields, by_gossip):
        if self.keypair or fields["nonce"] != self.cookie_nonce:
            return
        if "pending" not in self.state:
            # §3.4: the KGC pins this P_i, so it is stored before the request leaves.
            self.state["pending"] = self.create_request()
        request = bytes.fromhex(self.state["pending"]["request"])
        self.send(peer, "enrol_request", nonce=fields["nonce"], cookie=fields["cookie"], request=request)

    def create_request(self):
        """§3.3, §22.6: the token, P_i, N_i, the KGCs, a session, both proofs."""
        token, x, n = self.token, ristretto.random_scalar(), ristretto.random_scalar()
        value = (x * BASE).encode()
        fixed = value + (n * BASE).encode() + u32(1) + u16(1) + os.urandom(16)
        transcript = lp(token.statement) + fixed
        proofs = b""
        for label, secret, public in (("token key", token.tsk, token.tpk), ("secret value", x, value)):
            domain = f"quiver/1 proof of {label}"

            def challenge(k, domain=domain, public=public):
                return hash_to_scalar(domain, SUITE, public, k, transcript)

            proofs += prove(secret, domain, transcript, challenge)
        request = token.encoded + fixed + proofs
        return {"request": request.hex(), "x": f"{x:x}", "n": f"{n:x}"}

    def on_enrol_reply(self, now, peer, fields, by_gossip):
        """§3.5."""
        pending = self.state.get("pending")
        if self.keypair or not pending:
            return
        request, x, n = bytes.fromhex(pending["request"]), int(pending["x"], 16), int(pending["n"], 16)
        digest = hash_of("quiver/1 enrolment request", lp(SUITE), lp(request))
        if fields["request_digest"] != digest:
            raise Refused("the answer to another request")
        reader = Reader(fields["reply"])
        kgc, a, sealed = reader.take(2), reader.take(32), reader.rest
        if kgc != u16(1):
            raise Refused("a KGC that was not asked")
        salt = hash_of("quiver/1 enrolment reply", lp(SUITE), digest, kgc, a)
        point = ristretto.decode(a)
        key = extract(salt, (x * point).encode() + (n * point).encode())
        partial = Reader(open_sealed(key, bytes(12), b"", sealed))
        s, r = ristretto.scalar_decode(partial.take(32)), partial.take(32)
        partial.end()
        self.keypair = KeyPair.from_partial(self.deployment, self.token.identity, r, s, x)
        del self.state["pending"]
        secret = ristretto.scalar_encode(self.keypair.secret)
        self.state["key"] = {"public": self.keypair.public.encode().hex(), "secret": secret.hex()}
        self.event("enrolled", name=self.keypair.public.identity.name)
        for leader in self.leaders():
            self.greet_leader(leader)

    # Joining, §6 ---------------------------------------------------------------------------------------------------

    def greet_leader(self, peer):
        if self.keypair and self.wants_in and self.joining is None and self.member is None:
            serial = self.keypair.public.identity.serial
            if serial in self.revocations.serials:
                return
            self.joining = {"peer": peer, "nonce": os.urandom(16), "again": float("inf")}
            self.hello(peer, self.joining["nonce"])

    def hello(self, peer, nonce):
        drone = self.keypair.public.encode()
        self.send(peer, "join_hello", group=self.group, drone=drone, nonce=nonce, kem=self.deployment.kem)

    def on_join_challenge(self, now, peer, fields, by_gossip):
        joining = self.joining
        ahead = self.ahead.get(peer)
        if ahead and ahead.nonce and fields["nonce"] == ahead.nonce and not ahead.exchange:
            self.on_challenge_ahead(now, peer, fields)
            return
        if not joining or joining["peer"] != peer or fields["nonce"] != joining["nonce"] or "pair" in joining:
            return
        leader = self.challenger(fields)
        self.ask_for_list(peer, fields["revocation_number"])
        if self.differs(peer, fields):
            return
        kem, offer = self.offer(now, leader.handle(), fields.get("kem"), self.renews)
        if offer:
            joining["named" if isinstance(offer, Kappa) else "exchange"] = offer
        now_pair = joining["pair"] = Pair(0, ristretto.random_scalar())
        spare = joining["spare"] = self.draw_pair()
        self.join_tries += 1
        joining["again"] = now + min(JOIN_RETRY << self.join_tries - 1, MAX_JOIN_RETRY)
        self.request(peer, fields, leader, now_pair, spare, kem)

    def challenger(self, fields):
        """The leader whose challenge this is."""
        leader = PublicKey.decode(fields["leader"])
        if leader.identity.leads != self.group or leader.identity.serial in self.revoked():
            raise Refused("no leader of this group, or a revoked one")
        return leader

    def request(self, peer, fields, leader, now_pair, spare, kem):
        """§22.9: signed, with what the second factor adds."""
        spoken, drone = self.statement(spare), self.keypair.public.encode()
        message = (
            lp(self.group.encode()) + lp(leader.encode()) + lp(drone) + fields["challenge"] + fields["nonce"]
            + now_pair.point + u64(spare.q) + spare.point + lp(spoken["signature"])
        )
        more = {}
        if kem:
            more["kem"] = kem
            # §24.4, §24.5, §24.7.
            named = b"\2" + u64(kem["g"]) + kem["tag"] if "tag" in kem else None
            message += bytes([kem["set"]]) + (named or (b"\3" if kem.get("ahead") else b"\1") + lp(kem["key"]))
        self.send(
            peer, "join_request", group=self.group, drone=drone, nonce=fields["nonce"], challenge=fields["challenge"],
            ephemeral=now_pair.point, spare=spoken, signature=self.keypair.sign(self.deployment, "join", message),
            **more,
        )

    # The second factor, §24 ----------------------------------------------------------------------------------------

    def differs(self, peer, fields):
        """§24.6: a leader whose challenge names another set is asked for nothing."""
        theirs = fields.get("kem", {}).get("set", 0)
        if theirs != self.deployment.kem:
            self.event("another second factor", own=self.deployment.kem, leader=theirs, peer=peer)
        return theirs != self.deployment.kem

    def offer(self, now, leader, term, anew=False):
        """§24.4, §24.5: of a request, and κ that it names, or the exchange that it begins."""
        if not self.deployment.kem:
            return None, None
        held = self.kappas.get(leader)
        kappa = held and not anew and now < held.made + LIFETIME and held.at(leader, term["g"])
        if kappa:
            return {"set": kappa.set, "g": kappa.g, "tag": kappa.tag()}, kappa
        exchange = Exchange(leader, self.deployment.kem)
        return {"set": exchange.set, "key": exchange.key()}, exchange

    def on_join_ciphertext(self, now, peer, fields, by_gossip):
        """§24.4: taken over the connection alone over which the drone asked."""
        joining, ahead, drone = self.joining, self.ahead.get(peer), self.keypair and self.keypair.public.handle()
        given = fields.get("term", {}), fields["ciphertext"], now
        if joining and joining["peer"] == peer and joining["nonce"] == fields["nonce"] and "exchange" in joining:
            joining["exchange"].take(self.deployment.fingerprint, self.group, drone, *given)
        elif ahead and ahead.nonce == fields["nonce"] and ahead.exchange:
            ahead.exchange.take(self.deployment.fingerprint, self.group, drone, *given)
            (kappa,) = ahead.exchange.found.values()
            self.hold(ahead.exchange.leader, kappa)
            self.ahead[peer] = None
            self.store()
            self.event("second factor", peer=peer, g=kappa.g)

    def hold(self, leader, kappa):
        """§24.8: κ of 16 leaders; of more the oldest goes."""
        self.kappas[leader] = kappa
        if len(self.kappas) > MAX_LEADERS:
            del self.kappas[min(self.kappas, key=lambda one: self.kappas[one].made)]

    def kappa_for(self, header):
        """§24.3: κ of a header's leader at its g, None without a second factor."""
        if not header.kem:
            return None
        held = self.kappas.get(header.leader.handle())
        kappa = held and held.at(header.leader.handle(), header.kem_terms)
        if not kappa:
            raise Refused("no second factor that leads to this term")
        return kappa

    def ask_ahead(self, now):
        """§24.7: the leaders that do not lead, one after the other, each five times."""
        asked = next((one for one in self.ahead.items() if one[1] and one[1].tries), None)
        peer, ahead = asked or next((one for one in self.ahead.items() if one[1]), (None, None))
        if not ahead or now < ahead.again:
            return
        if ahead.tries == AHEAD_TRIES:
            self.ahead[peer] = None
            return
        ahead.tries += 1
        ahead.nonce, ahead.exchange, ahead.again = os.urandom(16), None, now + (AHEAD_RETRY << ahead.tries)
        self.hello(peer, ahead.nonce)

    def on_challenge_ahead(self, now, peer, fields):
        leader, ahead = self.challenger(fields), self.ahead[peer]
        self.ahead[peer] = None
        unused = [pair for pair in self.pairs if pair.spent is None]
        # The one that leads makes κ when it admits the member.
        if not self.member or not unused or leader == self.member.header.leader or self.differs(peer, fields):
            return
        kem, exchange = self.offer(now, leader.handle(), fields["kem"])
        if isinstance(exchange, Exchange):
            self.ahead[peer], ahead.exchange = ahead, exchange
            # Its E_now is used for nothing, and its spare point is the one that is published.
            self.request(peer, fields, leader, Pair(0, ristretto.random_scalar()), unused[-1], kem | {"ahead": 1})

    def draw_pair(self):
        """§9.3: numbers q go on for ever, and the pair is stored before it is published."""
        self.state["q"] = self.state.get("q", 0) + 1
        return Pair(self.state["q"], ristretto.random_scalar())

    def statement(self, pair):
        """§6.6, §22.9: a spare point, signed."""
        message = lp(self.group.encode()) + self.keypair.public.encode() + u64(pair.q) + pair.point
        signature = self.keypair.sign(self.deployment, "spare", message)
        return {"q": pair.q, "point": pair.point, "signature": signature}

    def on_welcome(self, now, peer, fields, by_gossip):
        joining = self.joining
        if not joining or "pair" not in joining or fields["nonce"] != joining["nonce"] or self.member:
            return
        header = self.verified(now, fields["header"])
        if not header.point:
            raise Refused("a welcome that makes no pair")
        entry, path = fields.get("entry"), fields.get("path")
        slot = entry["slot"] if entry else Reader(path or b"").number(4)
        if not header.adds(slot):
            raise Refused("a slot that the header does not add")

        def member(ratchet):
            if entry:
                return self.by_entry(header, fields["header"], slot, ratchet, entry)
            found, key, r = tree.open_path(header, slot, ratchet.chain, path)
            if r != joining["nonce"]:
                raise Refused("a path for another question")
            return Membership(slot, header, fields["header"], ratchet, key, found)

        self.enter(now, header, slot, member, "welcome")

    def join_by_wraps(self, now, fields):
        """§6.1: over a shared medium newcomers follow by the epoch's wraps, beside which their slots are listed."""
        joining, newcomers = self.joining, fields["newcomers"]
        if not joining or "pair" not in joining or "delta" not in fields or joining.get("false", 0) == 16:
            return
        listed = [newcomers[start:start + 12] for start in range(0, len(newcomers), 12)]
        slot = next((one[:4] for one in listed if one[4:] == joining["nonce"][:8]), None)
        if slot is None:
            return
        # Nothing authenticates the list: a slot that is false shows by the tag.
        joining["false"] = joining.get("false", 0) + 1
        header, slot = self.verified(now, fields["header"]), int.from_bytes(slot, "big")
        if slot >= MAX_SLOTS or not header.adds(slot) or not header.point:
            raise Refused("a slot that the header does not add")

        def member(ratchet):
            path, key = tree.Path(slot, {}).follow(header, tree.Wraps(fields["delta"]), ratchet.chain)
            return Membership(slot, header, fields["header"], ratchet, key, path)

        self.enter(now, header, slot, member, "wraps")

    def enter(self, now, header, slot, member_with, by):
        """A newcomer has its keys: with the one κ, of those that it may have, with which the tag fits (§24.4)."""
        joining, reason = self.joining, Refused("no second factor with this leader")
        for kappa in self.kappas_of_join(header):
            try:
                member = member_with(self.pair_up(header, slot, joining["pair"], kappa))
                self.check_key(header, member.key)
            except Refused as failure:
                reason = failure
                continue
            break
        else:
            raise reason
        if kappa:
            self.hold(header.leader.handle(), kappa)
        self.renews = False
        self.pairs, self.joining, self.join_tries, self.synced = [joining["spare"]], None, 0, True
        self.ahead = {peer: Ahead(now + AHEAD_RETRY) for peer in self.leaders()}
        self.activate(now, member, by)
        made_by = None if not kappa else "held" if "named" in joining else "exchange"
        self.event("joined", slot=member.slot, by=by, second_factor=made_by)

    def kappas_of_join(self, header):
        """κ that was named, or those that the ciphertexts gave, at the header's g; None without a second factor."""
        if not header.kem:
            return [None]
        leader, joining = header.leader.handle(), self.joining
        exchange = joining.get("exchange")
        if exchange and exchange.leader != leader:
            raise Refused("another leader than the one that was asked")
        had = exchange.found.values() if exchange else [joining["named"]] if "named" in joining else []
        return [kappa for kappa in (one.at(leader, header.kem_terms) for one in had) if kappa]

    def pair_up(self, header, slot, pair, kappa=None):
        """§14: the pair of this drone and the leader, of the epoch that makes it."""
        context = hash_of(
            "quiver/1 pair", lp(SUITE), self.deployment.master, lp(self.group.encode()), u64(header.term),
            u64(header.counter), header.point, header.leader.encode(), self.keypair.public.encode(), u32(slot),
            u64(pair.q), pair.point,
        )
        secret = agree((self.keypair.secret + pair.secret) % ORDER, ristretto.decode(header.point))
        return Ratchet.derive(secret, context, header.counter, kappa)

    # Epochs, §7 and §8 ---------------------------------------------------------------------------------------------

    def verified(self, now, fields):
        header = Header.from_wire(self.deployment, fields)
        header.verify(self.deployment, self.group, self.newest(), self.revoked(), now)
        return header

    def check_key(self, header, key):
        """§7.3, 5: the tag."""
        if not same(prf(key, "confirm", header.d0, header.entries_root), header.tag):
            raise Refused("the key does not fit the header's tag")

    def by_entry(self, header, fields, slot, ratchet, entry):
        if entry["slot"] != slot or len(entry["wrap"]) != 32:
            raise Refused("another slot's entry")
        ratchet = ratchet.at(header.counter)
        key = xor(entry["wrap"], prf(ratchet.chain, "wrap", header.d0, u32(slot)))
        member = Membership(slot, header, fields, ratchet, key)
        if header.height == 0:
            # Under flat the ratchet steps with its one use: §14.
            member.ratchet = ratchet.at(header.counter + 1)
        return member

    def on_rekey(self, now, peer, fields, by_gossip):
        if self.member is None:
            self.join_by_wraps(now, fields)
            return
        member = self.member
        epoch = fields["header"]["term"], fields["header"]["counter"]
        if epoch == member.header.epoch:
            self.on_same_epoch(now, peer, fields, by_gossip)
            return
        header = self.verified(now, fields["header"])
        # §9.1, §8.4: who is not in a term that opens joins again.
        why = "rejoin" if header.kind == OPEN else "removed"
        if self.removes(header, fields):
            self.end(why)
            return
        if self.lacks_kappa(header, peer):
            self.end("rejoin")
            return
        try:
            found = self.follow(header, fields)
        except tree.Out:
            self.end(why)
            return
        except tree.OthersPart:
            # §7.5: it changes nothing, and makes nobody ask.
            return
        except Refused as reason:
            self.event("refused", kind="rekey", reason=str(reason), peer=peer)
            found = None
        if found:
            self.take(now, found, fields)
        elif not self.question:
            # A newer epoch that cannot be followed: the leader that sent it is asked first (§10.5).
            self.ask(now, peer)

    def on_short_rekey(self, now, peer, fields, by_gossip):
        """§7.6: the header that is held completes it; what does not verify makes the member ask, and no more."""
        member = self.member
        if member is None:
            return
        held, epoch = member.header.epoch, (fields["term"], fields["counter"])
        if epoch < held:
            raise Refused("stale")
        before, digest = member.fields, member.header.digest
        if epoch == held:
            if all(fields[name] == before[name] for name in ("tag", "signature")):
                if not by_gossip and member.key:
                    self.acknowledge()
                return
            # Another header for the epoch held, completed with the fields of the one that is there.
            before, digest = before | {"counter": before["counter"] - 1}, before["prev"]
        try:
            whole = completed(before, digest, fields, tree.Wraps(fields["delta"]))
            if whole:
                self.on_rekey(now, peer, {"header": whole, "delta": fields["delta"]}, by_gossip)
                if self.member and self.member.header.epoch == epoch:
                    self.event("short header", counter=epoch[1])
                return
        except Refused:
            self.ask_by_hearsay(now, peer)
            raise
        # It builds on an epoch that was missed.
        self.ask_by_hearsay(now, peer)

    def ask_by_hearsay(self, now, peer):
        """§13.6: a question because of what nobody is known to have sent."""
        if self.member and not self.question:
            self.ask(now, self.next_leader() if self.leaders() else peer)

    def on_same_epoch(self, now, peer, fields, by_gossip):
        """The epoch that is held comes once more: acknowledged again; with a path that is lacked, that is taken."""
        member, path = self.member, fields.get("path")
        header = Header.from_wire(self.deployment, fields["header"])
        if header.digest != member.header.digest:
            self.on_contradiction(now, fields["header"])
        elif path and member.path is None:
            member.path = self.path_of_held(path)
        if not by_gossip and member.key:
            self.acknowledge()

    def path_of_held(self, message):
        member = self.member
        leaf = member.ratchet.at(member.header.counter).chain
        found, key, _ = tree.open_path(member.header, member.slot, leaf, message)
        self.check_key(member.header, key)
        return found

    def removes(self, header, fields):
        """§7.1: whether a header says that the member is out: by its slots, of this term's."""
        member = self.member
        if header.term != member.header.term:
            return header.kind == OPEN and contains(header.absent, member.slot)
        return contains(header.removed, member.slot) or contains(header.added, member.slot)

    def lacks_kappa(self, header, peer):
        """§24.7: a member without κ that leads to an opening's g joins again."""
        if header.kind != OPEN:
            return False
        try:
            self.kappa_for(header)
        except Refused:
            held = self.kappas.get(header.leader.handle())
            if held and held.g > header.kem_terms:
                # The leader's memory was put back: it learns from the header that it signed where it was.
                self.send(peer, "rekey", header=self.member.fields)
            return True
        return False

    def follow(self, header, fields):
        """The membership in a newer epoch, or a reason why it cannot be followed."""
        member, entry, delta, path = self.member, fields.get("entry"), fields.get("delta"), fields.get("path")
        if entry is delta is path is None:
            raise Refused("a header alone")
        if header.term != member.header.term:
            if not header.adds(member.slot) or header.kind != OPEN:
                raise Refused("a term whose opening was not received")
            return self.follow_opening(header, fields)
        if entry:
            return self.by_entry(header, fields["header"], member.slot, member.ratchet, entry)
        ratchet = member.ratchet.at(header.counter)
        if delta is not None:
            if header.prev != member.header.digest or member.path is None:
                raise Refused("wraps that build on another epoch, or on a path that is lacked")
            found, key = member.path.follow(header, tree.Wraps(delta), ratchet.chain)
        else:
            found, key, _ = tree.open_path(header, member.slot, ratchet.chain, path)
        return Membership(member.slot, header, fields["header"], ratchet, key, found)

    def follow_opening(self, header, fields):
        """§9.1: of the pairs that it holds, the unused one first; an entry names the q."""
        member, entry, kappa = self.member, fields.get("entry"), self.kappa_for(header)
        for pair in sorted(self.pairs, key=lambda pair: -pair.q):
            if entry and entry.get("q") != pair.q:
                continue
            ratchet = self.pair_up(header, member.slot, pair, kappa)
            try:
                if entry:
                    found = self.by_entry(header, fields["header"], member.slot, ratchet, entry)
                else:
                    if "delta" in fields:
                        empty = tree.Path(member.slot, {})
                        path, key = empty.follow(header, tree.Wraps(fields["delta"]), ratchet.chain)
                    else:
                        path, key, _ = tree.open_path(header, member.slot, ratchet.chain, fields["path"])
                    found = Membership(member.slot, header, fields["header"], ratchet, key, path)
                self.check_key(header, found.key)
            except (tree.Out, tree.OthersPart):
                raise
            except Refused:
                continue
            found.used = pair
            return found
        raise Refused("no spare pair that fits")

    def take(self, now, found, fields):
        self.check_key(found.header, found.key)
        opened = found.header.term != self.member.header.term
        if opened:
            used = found.used
            # §24.3: κ of before goes with the record that has the membership.
            if found.header.kem:
                self.kappas[found.header.leader.handle()] = self.kappa_for(found.header)
            used.spent = now
            # §9.3: e_q stays until the next one is acknowledged, so that a higher opening can be followed.
            self.pairs = [pair for pair in self.pairs if pair.q >= used.q] + [self.draw_pair()]
        by = next(which for which in ("entry", "delta", "path") if which in fields)
        # §8.3: a part of the wraps has 128 in its first byte.
        by = "part" if by == "delta" and fields["delta"][0] & 128 else by
        self.activate(now, found, by)
        if opened:
            self.publish_spares(now)

    def activate(self, now, member, by):
        """§7.3, 6: stores, activates, erases the former key, acknowledges."""
        before, self.member = self.member, member
        member.channel = Channel(self.deployment, member.header, member.key, member.slot, self.state["boot_no"])
        # §13.10: only in the same term, if the slots are listed, nobody is removed, and the epochs adjoin.
        if before and before.channel and before.header.term == member.header.term and not (
            member.header.changes or member.header.removed
        ) and member.header.prev == before.header.digest:
            member.former = before.channel, now + OVERLAP
        self.state.setdefault("newest", {})[self.group] = member.header.epoch
        self.store()
        if self.question and self.question.held != member.header.digest:
            self.question = None
        self.acknowledge()
        self.event("epoch", term=member.header.term, counter=member.header.counter, digest=member.header.digest.hex(),
                   strategy="flat" if member.header.height == 0 else "tree", by=by)
        for leader in self.leaders():
            self.ask_for_list(leader, member.header.revocation_number)

    def acknowledge(self):
        """§6.1: under A, to whoever leads; a leader that does not lead has no use for it."""
        member = self.member
        tag = prf(member.ratchet.auth, "ack", member.header.digest)
        for leader in self.leaders():
            self.send(leader, "ack", slot=member.slot, term=member.header.term, counter=member.header.counter, tag=tag)

    def end(self, why):
        """§9.3: however a membership ends, its keys and pairs go with it."""
        self.member, self.pairs, self.question, self.synced, self.ahead = None, [], None, False, {}
        self.wants_in = why == "rejoin"
        self.store()
        self.event("out", why=why)

    # Spare points, §9.3 and §10.5 ----------------------------------------------------------------------------------

    def publish_spare(self, peer):
        unused = [pair for pair in self.pairs if pair.spent is None]
        if unused and self.member:
            self.send(peer, "spare_publication", group=self.group, slot=self.member.slot,
                      spare=self.statement(unused[-1]))

    def publish_spares(self, now):
        self.spare_again = now + SPARE_RETRY
        for leader in self.leaders():
            self.publish_spare(leader)

    def on_spare_ack(self, now, peer, fields, by_gossip):
        if self.member and same(fields["tag"], prf(self.member.ratchet.auth, "spare ack", u64(fields["q"]))):
            self.spare_again = 0
            self.pairs = [pair for pair in self.pairs if pair.q >= fields["q"]]
            self.store()
            self.event("spare acknowledged", q=fields["q"])

    # Catching up, §11 ----------------------------------------------------------------------------------------------

    def ask(self, now, peer):
        member = self.member
        tries = self.question.tries + 1 if self.question else 1
        self.count += 1
        lacks = member.key is None or (member.header.height > 0 and member.path is None)
        # §11.2: the lowest bit says that keys are lacked, the next one that K_g is lost.
        count = self.count << 2 | (1 if lacks else 0) | (2 if member.key is None else 0)
        number = u32(self.state["boot_no"]) + u32(count) + os.urandom(8)
        held = member.header.digest
        self.question = Question(number, held, now + ASK_RETRY * min(16, 1 << tries - 1), tries)
        self.asked.add(peer)
        self.send(peer, "catch_up_request", group=self.group, slot=member.slot, number=number, held=held,
                  tag=prf(member.ratchet.auth, "catch-up", number, held))

    def on_catch_up_reply(self, now, peer, fields, by_gossip):
        member, question = self.member, self.question
        if not member or not question or fields["number"] != question.number:
            return
        header = Header.from_wire(self.deployment, fields["header"])
        if not same(fields["tag"], prf(member.ratchet.auth, "fresh", header.digest, question.number)):
            raise Refused("an answer that the leader did not make")
        path = fields.get("path")
        if header.epoch == member.header.epoch:
            if header.digest != member.header.digest:
                self.on_contradiction(now, fields["header"])
                return
            if path and member.path is None:
                # §8.4: of the epoch that was held before a restart the path alone, and not K_g.
                member.path = self.path_of_held(path)
        else:
            header = self.verified(now, fields["header"])
            if self.removes(header, fields):
                self.end("removed")
                return
            if self.lacks_kappa(header, peer):
                self.end("rejoin")
                return
            self.take(now, self.follow(header, fields), fields)
        self.question = None
        if not self.synced:
            self.synced = True
            self.event("synced", term=header.term, counter=header.counter)

    def vouch(self, statement):
        """§16.1: the key with its identity, and a signature of what the node says of its clock."""
        if self.keypair is None:
            return b""
        return self.keypair.public.encode() + self.keypair.sign(self.deployment, "clock", statement)

    # Leaving, eviction, revocation, §12 ----------------------------------------------------------------------------

    def leave(self):
        member, drone = self.member, self.keypair.public.encode()
        message = lp(self.group.encode()) + lp(drone) + member.header.digest
        signature = self.keypair.sign(self.deployment, "leave", message)
        for leader in self.leaders():
            self.send(leader, "leave", group=self.group, slot=member.slot, held=member.header.digest,
                      signature=signature)

    def on_eviction_notice(self, now, peer, fields, by_gossip):
        serials = fields["serials"]
        each = [serials[start:start + 16] for start in range(0, len(serials), 16)]
        if not self.member or fields["group"] != self.group or self.keypair.public.identity.serial not in each:
            return
        leader = PublicKey.decode(fields["leader"])
        identity = leader.identity
        leads = identity.leads == self.group and identity.ordinal == fields["term"] & 0xFFFF
        if not leads or identity.serial in self.revoked():
            raise Refused("a notice of somebody who may not give it")
        if (fields["term"], fields["counter"]) <= self.member.header.epoch or now >= identity.not_after:
            raise Refused("a notice of an epoch that is not after the one held, or of a leader that is expired")
        message = lp(self.group.encode()) + u64(fields["term"]) + u64(fields["counter"]) + serials
        leader.verify(self.deployment, "evict", message, fields["signature"])
        self.end("evicted")

    def ask_for_list(self, peer, number):
        if number > self.revocations.number:
            self.send(peer, "revocation_query", number=self.revocations.number, max_len=0)

    def on_revocation_list(self, now, peer, fields, by_gossip):
        head = Reader(Reader(fields["list"]).lp())
        if head.number(8) <= self.revocations.number:
            return
        self.revocations = RevocationList.verify(self.deployment, fields["list"])
        self.state["revocations"] = fields["list"].hex()
        self.event("revocation list", number=self.revocations.number)
        serials = self.revocations.serials
        if self.keypair and self.keypair.public.identity.serial in serials:
            self.wants_in = False
            if self.member:
                self.end("revoked")
        elif self.member and self.member.header.leader.identity.serial in serials:
            self.end("leader revoked")
            self.wants_in = True

    # Equivocation, §10.7 -------------------------------------------------------------------------------------------

    def on_contradiction(self, now, fields):
        """Another header for the epoch that is held: proof against who signed both."""
        proof = {"first": self.member.fields, "second": fields}
        self.on_equivocation_proof(now, None, proof, False)
        for peer in [EVERYBODY, *self.peers]:
            self.send(peer, "equivocation_proof", **proof)

    def on_equivocation_proof(self, now, peer, fields, by_gossip):
        first, second = (Header.from_wire(self.deployment, fields[which]) for which in ("first", "second"))
        serial = first.leader.identity.serial
        if first.epoch != second.epoch or first.digest == second.digest or serial != second.leader.identity.serial:
            raise Refused("a proof of nothing")
        if serial in self.refused:
            return
        first.verify_signer(self.deployment)
        second.verify_signer(self.deployment)
        self.refused.add(serial)
        if self.member and self.member.header.leader.identity.serial == serial:
            # The key is erased; the spare points stay, for a deputy's term.
            self.member.key = self.member.channel = self.member.former = None
            self.held_at_start = self.member.header.digest
        self.store()
        self.event("refuses a leader", name=first.leader.identity.name)

    # Messages, §13 -------------------------------------------------------------------------------------------------

    def can_send(self):
        return bool(self.member and self.member.channel and self.synced)

    def say(self, now, channel, text, signed=True):
        if not self.can_send() or now >= self.member.header.valid_until:
            raise Refused("no valid key that is known to be current")
        if len(text) > MAX_PAYLOAD:
            raise Refused("the message is longer than 65,536 bytes")
        message = self.member.channel.seal(channel, text, self.keypair if signed else None)
        self.send(EVERYBODY, "group_message", **message)

    def on_group_message(self, now, peer, fields, by_gossip):
        member = self.member
        if fields["group"] != self.group or not member:
            return
        epoch = fields["term"], fields["counter"]
        if epoch > member.header.epoch:
            self.ask_by_hearsay(now, peer)
            return
        channel = member.channel
        if epoch != member.header.epoch:
            former = member.former
            if not former or former[0].header.epoch != epoch or now >= former[1]:
                return
            channel = former[0]
        if not channel or not self.synced or now >= member.header.valid_until:
            return
        plaintext, signer = channel.open(fields, self.revoked(), now)
        self.event("message", channel=fields["channel"], text=plaintext, slot=fields["slot"],
                   signer=signer.name if signer else None)


def wire_kind(message, deployment):
    try:
        return wire.decode(deployment, message)[0]
    except ValueError:
        return None
