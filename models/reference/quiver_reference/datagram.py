"""Datagrams of the group: sealed and opened, with announcements, signatures and manifests. Protocol §20.1 to §20.7.

What needs a clock is left out: pace, when to announce, holding what came too early (§20.8, §20.9).
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESCCM

from .header import LEADER_SLOT, MAX_SLOTS
from .identity import PublicKey
from .ristretto import Refused
from .suite import Reader, hash_of, lp, prf, same, u32
from .traffic import Window
from .wire import read_shortest, varint

SINGLE, BATCH, SIGNED_SINGLE, SIGNED_BATCH, AGAIN, SIGNED_AGAIN, MANIFEST, ANNOUNCEMENT = range(8)
MAX_SENDERS = 512
SIGNED = SIGNED_SINGLE, SIGNED_BATCH, SIGNED_AGAIN, MANIFEST


def encode_slot(slot):
    return varint(0 if slot == LEADER_SLOT else slot + 1)


def read_length(reader):
    """§20.1: at most three bytes, as few as possible."""
    return read_shortest(reader, 3)


def read_slot(reader):
    value = read_length(reader)
    if value > MAX_SLOTS:
        raise Refused("no such slot")
    return value - 1 if value else LEADER_SLOT


def begin(kind, counter, slot):
    """§20.1: version, kind, low bits of the epoch; slot."""
    return bytes([1 << 6 | kind << 3 | counter & 7]) + encode_slot(slot)


def nonce(signed, number):
    """§20.2."""
    return bytes([signed]) + bytes(8) + u32(number)


def ccm_open(key, tag_length, nonce, sealed, header):
    try:
        return AESCCM(key, tag_length=tag_length).decrypt(nonce, sealed, header)
    except (InvalidTag, ValueError):
        raise Refused("the datagram does not open") from None


def seal(key, kind, counter, slot, number, body):
    header = begin(kind, counter, slot) + (number & 0xFFFF).to_bytes(2, "big")
    return header + AESCCM(key, tag_length=8).encrypt(nonce(kind in SIGNED, number), body, header)


def seal_announcement(key, counter, slot, boot_no, salt, number, body):
    header = begin(ANNOUNCEMENT, counter, slot) + u32(boot_no) + salt + u32(number)
    return header + AESCCM(key, tag_length=16).encrypt(nonce(0, number), body, header)


def keys(traffic_key, slot, boot_no, salt):
    """§20.2: K and K_a."""
    start = u32(slot) + u32(boot_no) + salt
    return prf(traffic_key, "datagram", start)[:16], prf(traffic_key, "announcement", start)[:16]


def statement(digest, slot, boot_no, salt, kind, number, body):
    """§20.5."""
    return digest + u32(slot) + u32(boot_no) + salt + bytes([kind]) + u32(number) + lp(body)


def manifest_hash(kind, number, body):
    """§20.6."""
    return hash_of("quiver/1 datagram", bytes([kind]), u32(number), lp(body))[:8]


def batch(payloads):
    return b"".join(varint(len(payload)) + payload for payload in payloads)


def read_batch(body):
    reader, payloads = Reader(body), []
    while reader.rest or not payloads:
        payloads.append(reader.take(read_length(reader)))
        if not payloads[-1]:
            raise Refused("an empty payload")
    return payloads


class Sender:
    """Seals one start's datagrams of one epoch."""

    def __init__(self, channel, keypair=None, salt=None):
        self.deployment, self.header, self.keypair = channel.deployment, channel.header, keypair
        self.slot, self.boot_no, self.salt = channel.slot, channel.boot_no, salt or os.urandom(8)
        self.key, self.announcement_key = keys(channel.key, self.slot, self.boot_no, self.salt)
        self.next, self.announced, self.sent = {False: 0, True: 0}, 0, []

    def sign(self, kind, number, body):
        start = self.header.digest, self.slot, self.boot_no, self.salt
        return self.keypair.sign(self.deployment, "datagram", statement(*start, kind, number, body))

    def payloads(self, payloads, signed=False):
        """§20.3: one payload, or several in one datagram."""
        one = len(payloads) == 1
        body = payloads[0] if one else batch(payloads)
        kind = (SINGLE if one else BATCH) + (SIGNED_SINGLE if signed else 0)
        if not signed:
            self.sent.append((kind, self.next[False], body))
        return self.sealed(kind, body)

    def sealed(self, kind, body):
        signed = kind in SIGNED
        number = self.next[signed]
        self.next[signed] += 1
        if signed:
            body += self.sign(kind, number, body)
        return seal(self.key, kind, self.header.counter, self.slot, number, body)

    def manifest(self):
        """§20.6: of all that was sent unsigned since the last one."""
        sent, self.sent = self.sent, []
        return self.sealed(MANIFEST, u32(sent[0][1]) + b"".join(manifest_hash(*one) for one in sent))

    def announcement(self, wanted=(), interval=10):
        """§20.4; signed, and then nobody is asked, or not."""
        body = bytes([interval]) + u32(self.next[False]) + bytes([len(wanted)])
        body += b"".join(bytes([key]) + encode_slot(slot) for key, slot in wanted)
        if self.keypair and not wanted:
            body = b"\1" + body + self.sign(ANNOUNCEMENT, 0, bytes([interval])) + self.keypair.public.encode()
        else:
            body = b"\0" + body
        number, self.announced = self.announced, self.announced + 1
        start = self.slot, self.boot_no, self.salt, number
        return seal_announcement(self.announcement_key, self.header.counter, *start, body)


class Known:
    """What a receiver knows of a sender."""

    def __init__(self, boot_no, salt, key, signer):
        self.boot_no, self.salt, self.key, self.signer = boot_no, salt, key, signer
        self.windows = {False: Window(boot_no, salt), True: Window(boot_no, salt)}
        self.came = {}


class Receiver:
    """Opens an epoch's datagrams."""

    def __init__(self, channel):
        self.channel, self.senders = channel, {}

    def open(self, datagram, revoked, now):
        """§20.7: a dictionary that says what came."""
        reader = Reader(datagram)
        first = reader.number(1)
        kind, low = first >> 3 & 7, first & 7
        if first >> 6 != 1 or low != self.channel.header.counter & 7:
            raise Refused("another version or epoch")
        slot = read_slot(reader)
        if kind == ANNOUNCEMENT:
            return self.open_announcement(datagram, slot, reader, revoked, now)
        known = self.senders.get(slot)
        if known is None:
            raise Refused("a sender that has not announced itself")
        signed, low = kind in SIGNED, reader.number(2)
        window = known.windows[signed]
        # RFC 9147, 4.2.2: the number closest to the one that is expected.
        candidates = [(window.next >> 16 << 16) + low + step for step in (-65536, 0, 65536)]
        number = min((one for one in candidates if 0 <= one < 1 << 32), key=lambda one: abs(one - window.next))
        if not window.admits(number):
            raise Refused("replayed, or too old")
        header = datagram[: len(datagram) - len(reader.rest)]
        body = ccm_open(known.key, 8, nonce(signed, number), reader.rest, header)
        if signed:
            if known.signer is None or len(body) < 64:
                raise Refused("signed by nobody that is known")
            body, signature = body[:-64], body[-64:]
            start = self.channel.header.digest, slot, known.boot_no, known.salt
            said = statement(*start, kind, number, body)
            known.signer.verify(self.channel.deployment, "datagram", said, signature)
        window.mark(number)
        return self.content(known, slot, kind, number, body)

    def content(self, known, slot, kind, number, body):
        result = {"slot": slot, "kind": kind, "number": number, "payloads": [], "signer": None}
        if kind in SIGNED:
            result["signer"] = known.signer.identity
        else:
            known.came[number] = manifest_hash(kind, number, body)
        if kind == MANIFEST:
            reader = Reader(body)
            since, hashes = reader.number(4), []
            while reader.rest:
                hashes.append(reader.take(8))
            result["contradicts"] = [
                since + place for place, said in enumerate(hashes)
                if not same(known.came.get(since + place, said), said)
            ]
        elif kind in (SINGLE, SIGNED_SINGLE):
            result["payloads"] = [body]
        elif kind in (BATCH, SIGNED_BATCH):
            result["payloads"] = read_batch(body)
        else:
            result["before"] = body[0], int.from_bytes(body[1:5], "big")
            result["payloads"] = read_batch(body[5:])
        return result

    def open_announcement(self, datagram, slot, reader, revoked, now):
        boot_no, salt, number = reader.number(4), reader.take(8), reader.number(4)
        header = datagram[: len(datagram) - len(reader.rest)]
        key, announcement_key = keys(self.channel.key, slot, boot_no, salt)
        body = Reader(ccm_open(announcement_key, 16, nonce(0, number), reader.rest, header))
        flags, interval, following, count = body.number(1), body.number(1), body.number(4), body.number(1)
        if flags not in (0, 1, 3) or count > 8:
            raise Refused("an announcement")
        wanted = [(body.number(1), read_slot(body)) for _ in range(count)]
        signer, before = None, self.senders.get(slot)
        if flags:
            signed_next = body.take(4) if flags == 3 else b""
            signature, signer = body.take(64), PublicKey.decode(body.rest)
            self.check_signer(signer, slot, revoked, now)
            said = statement(self.channel.header.digest, slot, boot_no, salt, ANNOUNCEMENT, 0,
                             bytes([interval]) + signed_next)
            signer.verify(self.channel.deployment, "datagram", said, signature)
        elif body.rest:
            raise Refused("an announcement")
        self.take_start(slot, Known(boot_no, salt, key, signer), before, following)
        return {"slot": slot, "kind": ANNOUNCEMENT, "number": number, "payloads": [], "wanted": wanted,
                "signer": signer.identity if signer else None}

    def check_signer(self, signer, slot, revoked, now):
        if (slot == LEADER_SLOT) != (signer.handle() == self.channel.header.leader.handle()):
            raise Refused("the leader's slot goes with the leader's signature")
        if signer.identity.serial in revoked or now >= signer.identity.not_after:
            raise Refused("revoked, refused or expired")

    def take_start(self, slot, known, before, following):
        """§20.4: whose word counts."""
        if before and (before.boot_no, before.salt) == (known.boot_no, known.salt):
            before.signer = before.signer or known.signer
            return
        if before and known.boot_no <= before.boot_no and not (known.signer and not before.signer):
            raise Refused("a start before the one that is known")
        if before and before.signer and (not known.signer or before.signer.handle() != known.signer.handle()):
            raise Refused("another drone in a signer's slot")
        if before is None and len(self.senders) == MAX_SENDERS:
            raise Refused("too many senders in this epoch")
        known.windows[False].next = following
        self.senders[slot] = known
