"""Group messages: keys, nonces, statements, replay windows. Protocol §13."""

import os

from .header import LEADER_SLOT, MAX_SLOTS, TREE
from .identity import PublicKey
from .ristretto import Refused
from .suite import hash_of, lp, open_sealed, prf, seal, u32, u64

WINDOW, MAX_SENDERS = 1024, 65_536


class Window:
    """§13.5: the numbers of one sender that were received."""

    def __init__(self, boot_no, salt):
        self.boot_no, self.salt, self.next, self.seen = boot_no, salt, 0, set()

    def admits(self, number):
        return number >= self.next or (number + WINDOW >= self.next and number not in self.seen)

    def mark(self, number):
        self.seen.add(number)
        self.next = max(self.next, number + 1)
        self.seen = {one for one in self.seen if one + WINDOW >= self.next}


class Channel:
    """Seals and opens the messages of one epoch."""

    def __init__(self, deployment, header, group_key, slot, boot_no):
        self.deployment, self.header, self.slot, self.boot_no = deployment, header, slot, boot_no
        self.key = prf(group_key, "traffic", header.digest)
        self.salt, self.counter, self.windows = os.urandom(8), 0, {}

    def associated(self, slot, boot_no, salt, counter, channel, signer):
        """§13.1: AAD."""
        named = b"\1" + signer if signer else b"\0"
        return self.header.digest + u32(slot) + u32(boot_no) + salt + u64(counter) + lp(channel.encode()) + named

    def statement(self, message):
        """§13.3, §22.9: what a sender signs."""
        return (
            lp(message["group"].encode()) + self.header.digest + u32(message["slot"]) + u32(message["boot_no"])
            + message["salt"] + u64(message["number"]) + u64(message["hedge"]) + lp(message["channel"].encode())
            + hash_of("quiver/1 group message", lp(message["ciphertext"]))
        )

    def seal(self, channel, plaintext, keypair=None):
        start = u32(self.slot) + u32(self.boot_no) + self.salt
        signer = keypair.public.handle() if keypair else None
        aad = self.associated(self.slot, self.boot_no, self.salt, self.counter, channel, signer)
        hedge = prf(prf(self.key, "hedge", start), "nonce", aad, plaintext)[:8]
        nonce = hedge + u32(self.counter)
        message = {
            "group": self.header.group, "term": self.header.term, "counter": self.header.counter, "slot": self.slot,
            "boot_no": self.boot_no, "salt": self.salt, "number": self.counter, "channel": channel,
            "ciphertext": seal(prf(self.key, "sender", start), nonce, aad, plaintext),
            "hedge": int.from_bytes(hedge, "big"),
        }
        if keypair:
            signature = keypair.sign(self.deployment, "command", self.statement(message))
            message["source"] = {"drone": keypair.public.encode(), "signature": signature}
        self.counter += 1
        return message

    def open(self, message, revoked, now):
        """§13.4: the plaintext, and the identity of the signer or None."""
        slot, number, source = message["slot"], message["number"], message.get("source")
        slots = 1 << self.header.height if self.header.strategy == TREE else MAX_SLOTS
        if len(message["salt"]) != 8 or number >= 1 << 32 or not (slot < slots or slot == LEADER_SLOT):
            raise Refused("a claim that no member can make")
        drone = PublicKey.decode(source["drone"]) if source else None
        signer = drone.handle() if drone else None
        if (slot == LEADER_SLOT) != (signer == self.header.leader.handle()):
            raise Refused("the leader's slot, and no other, goes with the leader's signature")
        # One window for the leader, one per signer's key, one per slot that does not sign.
        sender = signer or slot
        window = self.windows.get(sender)
        start = message["boot_no"], message["salt"]
        if window and (start[0] < window.boot_no or (start[0] == window.boot_no and start[1] != window.salt)):
            raise Refused("a start before the newest one, or another of its number")
        if window and start[0] == window.boot_no and not window.admits(number):
            raise Refused("replayed, or too old")
        if window is None and len(self.windows) == MAX_SENDERS:
            raise Refused("too many senders in this epoch")
        aad = self.associated(slot, *start, number, message["channel"], signer)
        key = prf(self.key, "sender", u32(slot) + u32(start[0]) + start[1])
        plaintext = open_sealed(key, u64(message["hedge"]) + u32(number), aad, message["ciphertext"])
        if drone:
            identity = drone.identity
            if identity.serial in revoked or now >= identity.not_after:
                raise Refused("the signer is revoked, refused or expired")
            if slot != LEADER_SLOT and identity.leads is not None:
                raise Refused("a leader that does not lead")
            drone.verify(self.deployment, "command", self.statement(message), source["signature"])
        if window is None or start[0] > window.boot_no:
            window = self.windows[sender] = Window(*start)
        window.mark(number)
        return plaintext, drone.identity if drone else None
