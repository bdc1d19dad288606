"""A member's side of the key tree: reads wraps or a part of them, follows by them, reads paths. Protocol §8, §22.8."""

from dataclasses import dataclass, field

from .header import MAX_SLOTS
from .ristretto import Refused
from .suite import Reader, hash_of, open_sealed, prf, same, u32, xor


class Out(Refused):
    """The wraps say that the member is out: §8.3."""


class OthersPart(Refused):
    """A part of the wraps without the member's own nodes."""


def node(level, index):
    """§8.1: as it is hashed."""
    return bytes([level]) + u32(index)


class Bits:
    """Bits of a string, the lowest of each byte first."""

    def __init__(self, encoded):
        self.encoded, self.place = encoded, 0

    def take(self):
        if self.place >= 8 * len(self.encoded):
            raise Refused("truncated")
        bit = self.encoded[self.place // 8] >> self.place % 8 & 1
        self.place += 1
        return bit

    def rest(self):
        """The bytes behind, once the last byte's other bits are zero."""
        while self.place % 8:
            if self.take():
                raise Refused("bits behind the last one")
        return self.encoded[self.place // 8:]


@dataclass
class Child:
    """What a node says of one of its children."""

    in_r: bool
    in_a: bool
    has_wrap: bool
    wrap: bytes = b""
    # The node itself, or M of it if a part lacks it; neither if it is a leaf or unchanged.
    below: "Said | None" = None
    digest: bytes = b""


@dataclass
class Said:
    """A node of R or A in the wraps."""

    level: int
    index: int
    children: list = field(default_factory=list)

    def changes_below(self, side):
        """Whether a child is an inner node of R or A."""
        return self.level > 1 and (self.children[side].in_r or self.children[side].in_a)

    def beneath(self):
        """The children that are inner nodes of R or A."""
        return [self.children[side] for side in (0, 1) if self.changes_below(side)]

    def text(self):
        """T: §8.3."""
        said = sum(
            flag << 3 * side + place
            for side, child in enumerate(self.children)
            for place, flag in enumerate((child.in_r, child.in_a, child.has_wrap))
        )
        own = b"".join(child.wrap for child in self.children)
        beneath = self.beneath()
        if len(beneath) == 1:
            return bytes([said]) + own + beneath[0].below.text()
        return bytes([said]) + own + b"".join(child.digest or child.below.digest() for child in beneath)

    def digest(self):
        """M: §8.3."""
        return hash_of("quiver/1 node", node(self.level, self.index), self.text())


CODES = {0: (1, 0, 0, 0, 0, 1), 1: (0, 0, 1, 1, 0, 0), 2: (1, 0, 0, 1, 0, 1)}


class Wraps:
    """The wraps of an epoch, or a part of them."""

    def __init__(self, encoded):
        first = Reader(encoded).number(1)
        self.height, self.is_part = first & 31, bool(first & 128)
        self.first = first & 127
        self.root_in_r, self.root_in_a = bool(first & 32), bool(first & 64)
        if not 1 <= self.height <= 20:
            raise Refused("no such height")
        bits = Bits(encoded[1:])
        order = []
        self.top = self.read_node(bits, self.height, 0, order)
        strings = Reader(bits.rest())
        for said in order:
            for child in said.children:
                if child.has_wrap:
                    child.wrap = strings.take(32)
            if len(said.beneath()) == 2:
                for child in said.beneath():
                    if child.below is None:
                        child.digest = strings.take(32)
        strings.end()

    def read_node(self, bits, level, index, order):
        if len(order) >= 2 * MAX_SLOTS:
            raise Refused("too many nodes")
        said = Said(level, index)
        order.append(said)
        code = bits.take() | bits.take() << 1
        flags = CODES[code] if code in CODES else tuple(bits.take() for _ in range(6))
        said.children = [Child(*map(bool, flags[:3])), Child(*map(bool, flags[3:]))]
        sides = [side for side in (0, 1) if said.changes_below(side)]
        # In a part each child of a node that forks says whether it follows.
        if self.is_part and len(sides) == 2:
            sides = [side for side, follows in [(side, bits.take()) for side in sides] if follows]
        for side in sides:
            said.children[side].below = self.read_node(bits, level - 1, 2 * index + side, order)
        return said

    def root(self):
        """entries_root: §8.3."""
        return hash_of("quiver/1 wraps", bytes([self.first]), self.top.text())


@dataclass
class Path:
    """The keys of a member's path by level, from 1 to the height."""

    slot: int
    keys: dict

    def follow(self, header, wraps, leaf):
        """§8.4: the path and K_g of the epoch of `header`, by wraps; `leaf` is W[c] of that epoch."""
        if not same(wraps.root(), header.entries_root) or wraps.height != header.height:
            raise Refused("wraps of another epoch")
        return self.climb(header, *self.descend(wraps), leaf)

    def descend(self, wraps):
        """What is said of the nodes above the slot: by level whether in R, whether in A, and the wrap for it."""
        in_r, in_a, wrap = {wraps.height: wraps.root_in_r}, {wraps.height: wraps.root_in_a}, {}
        said, lowest = wraps.top, None
        while True:
            child = said.children[self.slot >> said.level - 1 & 1]
            level = said.level - 1
            in_r[level], in_a[level] = child.in_r, child.in_a
            if child.has_wrap:
                wrap[level] = child.wrap
            if in_r[said.level]:
                lowest = said.level
            if level == 0 or not (child.in_r or child.in_a):
                break
            if child.below is None:
                raise OthersPart("a part without the member's own nodes")
            said = child.below
        # §8.3: out if the lowest node of R above the slot has no wrap for the child on the way to it.
        if lowest is not None and lowest - 1 not in wrap:
            raise Out
        return in_r, in_a, wrap, wraps.height

    def climb(self, header, in_r, in_a, wrap, height, leaf):
        """§8.2, 2 to 5, from the leaf up; no seed and no former key outlives this."""
        below, seed, keys = leaf, None, {}
        for level in range(1, height + 1):
            name, child = node(level, self.slot >> level), node(level - 1, self.slot >> level - 1)
            if in_r.get(level):
                if level - 1 in wrap:
                    seed = xor(wrap[level - 1], prf(below, "wrap node", header.d0, name, child))
                elif seed is not None:
                    seed = prf(seed, "up", name)
                else:
                    # §8.3: a node of R has a wrap for each child outside of R that a member remains beneath.
                    raise Refused("wraps that lack one")
                key = prf(seed, "node", name)
            else:
                seed, key = None, self.keys.get(level)
            if key is None:
                raise Refused("a node whose key the member lacks")
            # Wraps are under the key before it steps; what is kept is the key after.
            below = key
            stepped = level in wrap or in_a.get(level)
            keys[level] = prf(key, "step", name) if stepped else key
        return Path(self.slot, keys), prf(keys[height], "group key", header.d0)


def open_path(header, slot, leaf, message):
    """§8.2, 6: the path and K_g in a path message, and its r."""
    reader = Reader(message)
    named, r, sealed = reader.number(4), reader.take(16), reader.rest
    if named != slot:
        raise Refused("another slot's path")
    plaintext = Reader(open_sealed(prf(leaf, "path", header.digest, r), bytes(12), header.digest + u32(slot), sealed))
    keys = {level: plaintext.take(32) for level in range(1, header.height + 1)}
    group_key = plaintext.take(32)
    plaintext.end()
    return Path(slot, keys), group_key, r
