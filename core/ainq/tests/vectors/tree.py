#!/usr/bin/env python3
"""Writes tree.json: a small history of a tree of keys, from the rules alone.

Needs Python 3.9 and the package `cryptography`. Shares nothing with the Rust code: keys are kept in dictionaries by
(level, index), sets are sets, and every epoch is worked out from the sets of removed and added slots.
"""

import hashlib
import hmac
import json
import struct
import sys

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SUITE = b"QUIVER-AINQ-RISTRETTO255-SHA512-v1"


def lp(x):
    return struct.pack(">I", len(x)) + x


def prf(key, label, x=b""):
    return hmac.new(key, lp(SUITE) + lp(label) + x, hashlib.sha256).digest()


def xor(a, b):
    return bytes(i ^ j for i, j in zip(a, b))


def name(node):
    return struct.pack(">BI", *node)


def made_up(*what):
    """Thirty-two bytes that stand for something random."""
    return hashlib.sha256("/".join(map(str, ("quiver tree vector",) + what)).encode()).digest()


def children_of(node):
    return (node[0] - 1, 2 * node[1]), (node[0] - 1, 2 * node[1] + 1)


def ancestors_of(node, height):
    return {(level, node[1] >> level - node[0]) for level in range(node[0] + 1, height + 1)}


def ancestors(slots, height):
    return {(level, slot >> level) for slot in slots for level in range(1, height + 1)}


def runs(slots):
    """The number of runs of a set, then the first slot and the length of each."""
    firsts = [slot for slot in sorted(slots) if slot - 1 not in slots]
    lengths = [next(n for n in range(1, len(slots) + 2) if first + n not in slots) for first in firsts]
    return struct.pack(">I", len(firsts)) + b"".join(struct.pack(">II", *run) for run in zip(firsts, lengths))


class Wraps:
    """The wraps of an epoch: by child; and what is done to nodes and leaves."""

    def __init__(self, height, wraps, refreshed, added):
        self.height, self.wraps = height, wraps
        # Inner nodes that nobody is beneath any more, or only newcomers, are not spoken of.
        root = (height, 0)
        new = {v for v in added if v[0] > 0 and v != root
               and all((0, slot) in added for slot in range(v[1] << v[0], v[1] + 1 << v[0]))}
        self.added = added - new
        alive = {above for c in wraps for above in ancestors_of(c, height)} | self.added
        self.refreshed = {v for v in refreshed - new if v == root or v[0] == 0 or v in alive}

    def changes(self, node):
        return node in self.refreshed or node in self.added

    def flags(self, node):
        return [flag for c in children_of(node) for flag in (c in self.refreshed, c in self.added, c in self.wraps)]

    def beneath(self, node):
        return [c for c in children_of(node) if c[0] > 0 and self.changes(c)]

    def text(self, node):
        """T of a node."""
        said = sum(flag << place for place, flag in enumerate(self.flags(node)))
        own = b"".join(self.wraps[c] for c in children_of(node) if c in self.wraps)
        beneath = self.beneath(node)
        rest = self.text(beneath[0]) if len(beneath) == 1 else b"".join(map(self.hash, beneath))
        return bytes([said]) + own + rest

    def hash(self, node):
        """M of a node."""
        return hashlib.sha256(lp(b"quiver/1 node") + name(node) + self.text(node)).digest()

    def first(self):
        root = (self.height, 0)
        return self.height | (root in self.refreshed) << 5 | (root in self.added) << 6

    def root(self):
        return hashlib.sha256(lp(b"quiver/1 wraps") + bytes([self.first()]) + self.text((self.height, 0))).digest()

    def encode(self, keep):
        nodes, left_out = [], []

        def visit(node):
            nodes.append(node)
            beneath = self.beneath(node)
            for c in beneath:
                visit(c) if len(beneath) == 1 or keep(c) else left_out.append(c)

        visit((self.height, 0))
        bits, strings = [], b""
        for node in nodes:
            flags, children = self.flags(node), children_of(node)
            usual = {(1, 0, 0, 0, 0, 1): [0, 0], (0, 0, 1, 1, 0, 0): [1, 0], (1, 0, 0, 1, 0, 1): [0, 1]}
            bits += usual.get(tuple(map(int, flags)), [1, 1] + flags)
            strings += b"".join(self.wraps[c] for c in children if c in self.wraps)
            beneath = self.beneath(node)
            for c in beneath if len(beneath) == 2 else []:
                bits += [c not in left_out] if left_out else []
                strings += self.hash(c) if c in left_out else b""
        packed = bytearray((len(bits) + 7) // 8)
        for place, bit in enumerate(bits):
            packed[place // 8] |= bit << place % 8
        return bytes([self.first() | (128 if left_out else 0)]) + bytes(packed) + strings


class Tree:
    def __init__(self):
        self.epoch, self.height, self.chains, self.keys = 0, 1, {}, {}

    def occupied(self, node):
        return any(slot >> node[0] == node[1] for slot in self.chains)

    def open(self, members):
        """A term opens: all nodes above members are refreshed, and wraps reach members as in any epoch."""
        self.epoch = 1
        self.chains = {slot: [made_up("W", 1, slot), made_up("A", 1, slot)] for slot in members}
        self.height = max(1, max(members).bit_length())
        made = self.refresh(ancestors(members, self.height), set(), {}, [], [])
        d0, group_key = bytes.fromhex(made["d0"]), bytes.fromhex(made["group_key"])
        made["entries"] = [
            {"slot": s, "wrap": xor(group_key, prf(self.chains[s][0], b"wrap", d0 + struct.pack(">I", s))).hex()}
            for s in sorted(members)]
        made["members"] = [{"slot": s, "chain": c[0].hex(), "auth": c[1].hex()} for s, c in sorted(self.chains.items())]
        return made

    def rekey(self, removed, added):
        self.epoch += 1
        epoch, before = self.epoch, self.height
        for slot in removed:
            del self.chains[slot]
        # A chain belongs to the epoch, used or not.
        for chain in self.chains.values():
            chain[0] = prf(chain[0], b"step")
        newcomers = {slot: [made_up("W", epoch, slot), made_up("A", epoch, slot)] for slot in added}
        highest = max(list(self.chains) + list(newcomers))
        self.height = max(before, highest.bit_length())
        # 1. what is refreshed, what is above newcomers
        r = ancestors(removed, before) | {(level, 0) for level in range(before + 1, self.height + 1)}
        if removed:
            r |= ancestors(removed, self.height)
        if not removed and not added:
            r = {(self.height, 0)}
        return self.refresh(r, ancestors(added, self.height), newcomers, removed, added)

    def refresh(self, r, a, newcomers, removed, added):
        epoch, root, d0 = self.epoch, (self.height, 0), made_up("D0", self.epoch)
        # 2. seeds, from the first child of r that somebody remains beneath, and stars
        seed, chained, star = {}, {}, {}
        for v in sorted(r):
            children = [c for c in ((v[0] - 1, 2 * v[1]), (v[0] - 1, 2 * v[1] + 1)) if self.occupied(c)]
            chained[v] = next((c for c in children if c in r), None)
            if chained[v]:
                seed[v] = prf(seed[chained[v]], b"up", name(v))
            elif children:
                seed[v] = made_up("n", epoch, *v)
        for node in ancestors(list(self.chains) + list(newcomers), self.height):
            if node in seed:
                star[node] = prf(seed[node], b"node", name(node))
            elif node in r or node not in self.keys:
                star[node] = made_up("n", epoch, *node)
            else:
                star[node] = self.keys[node]
        # 3. wraps
        wraps, used = {}, set()
        for v in sorted(r):
            for c in ((v[0] - 1, 2 * v[1]), (v[0] - 1, 2 * v[1] + 1)):
                if not self.occupied(c) or c == chained[v]:
                    continue
                used.add(c)
                key = self.chains[c[1]][0] if c[0] == 0 else star[c]
                wraps[c] = xor(seed[v], prf(key, b"wrap node", d0 + name(v) + name(c)))
        written = Wraps(self.height, wraps, r | {(0, slot) for slot in removed}, a | {(0, slot) for slot in added})
        # 4. steps
        stepped = used | a
        self.keys = {w: prf(n, b"step", name(w)) if w in stepped else n for w, n in star.items()}
        self.chains.update(newcomers)
        # 5. the group's key
        group_key = prf(self.keys[root], b"group key", d0)
        paths = [self.path_message(slot, group_key) for slot in sorted(set(added) | {min(self.chains)})]
        return {
            "d0": d0.hex(),
            "removed": sorted(removed),
            "changes": hashlib.sha256(lp(b"quiver/1 slots") + runs(removed) + runs(added)).hexdigest(),
            "added": [{"slot": s, "chain": made_up("W", epoch, s).hex(), "auth": made_up("A", epoch, s).hex()}
                      for s in sorted(added)],
            "fresh": [{"level": level, "index": index, "key": made_up("n", epoch, level, index).hex()}
                      for level in range(1, self.height + 1) for index in range(1 << self.height - level)],
            "height": self.height,
            "delta": written.encode(lambda node: True).hex(),
            "entries_root": written.root().hex(),
            "group_key": group_key.hex(),
            "keys": [{"level": node[0], "index": node[1], "key": key.hex()} for node, key in sorted(self.keys.items())],
            "paths": paths,
            "branches": [{"slot": slot, "branch": written.encode(lambda node: slot >> node[0] == node[1]).hex()}
                         for slot in sorted(set(self.chains) | set(removed))],
        }

    def path_message(self, slot, group_key):
        # 6. path messages
        digest, r = made_up("D", self.epoch), made_up("r", self.epoch, slot)[:16]
        chain, _ = self.chains[slot]
        plaintext = b"".join(self.keys[(level, slot >> level)] for level in range(1, self.height + 1)) + group_key
        aad = digest + struct.pack(">I", slot)
        sealed = ChaCha20Poly1305(prf(chain, b"path", digest + r)).encrypt(bytes(12), plaintext, aad)
        message = struct.pack(">I", slot) + r + sealed
        return {"slot": slot, "digest": digest.hex(), "r": r.hex(), "message": message.hex()}


def main():
    tree = Tree()
    opening = tree.open([0, 1, 2, 3, 4])
    changes = [
        ([], []),            # expiry
        ([1], []),           # a leave: its neighbour's leaf wraps
        ([3], [1]),          # one goes, one comes elsewhere
        ([2], [2]),          # a slot freed and filled again
        ([], [3, 5, 6, 7]),  # joins only: nothing is wrapped
        ([], [8]),           # the tree doubles
        ([0, 8, 5], [9, 10]),
        ([9, 10, 4], []),    # a subtree empties
        ([], []),
    ]
    epochs = [tree.rekey(removed, added) for removed, added in changes]
    json.dump({"suite": SUITE.decode(), "opening": opening, "epochs": epochs}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
