"""The group ristretto255 (RFC 9496) in integers: points, their encodings, scalars. Not constant-time.

A point is a representative (X, Y, Z, T) on edwards25519 in extended coordinates: x = X/Z, y = Y/Z, xy = T/Z.
"""

import os

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


class Refused(ValueError):
    """Bytes that encode nothing of the kind, or that do not verify."""


def is_negative(x):
    """A field element counts as negative if its least value is odd (RFC 9496, 4.1)."""
    return x % P & 1


def absolute(x):
    return P - x % P if is_negative(x) else x % P


def sqrt_ratio(u, v):
    """Whether u/v is a square, and the root of it or of i·u/v that is not negative (RFC 9496, 4.2)."""
    r = u * v**3 * pow(u * v**7, (P - 5) // 8, P) % P
    check = v * r * r % P
    if check in (-u % P, -u * SQRT_M1 % P):
        r = r * SQRT_M1 % P
    return check in (u % P, -u % P), absolute(r)


INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]


class Point:
    """An element of the group."""

    def __init__(self, x, y, z, t):
        self.coordinates = x % P, y % P, z % P, t % P

    def __add__(self, other):
        x1, y1, z1, t1 = self.coordinates
        x2, y2, z2, t2 = other.coordinates
        a, b = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
        c, d = 2 * D * t1 * t2, 2 * z1 * z2
        e, f, g, h = b - a, d - c, d + c, b + a
        return Point(e * f, g * h, f * g, e * h)

    def __neg__(self):
        x, y, z, t = self.coordinates
        return Point(-x, y, z, -t)

    def __rmul__(self, scalar):
        result, double = IDENTITY, self
        while scalar:
            if scalar & 1:
                result = result + double
            double, scalar = double + double, scalar >> 1
        return result

    def __eq__(self, other):
        x1, y1, _, _ = self.coordinates
        x2, y2, _, _ = other.coordinates
        return (x1 * y2 - y1 * x2) % P == 0 or (y1 * y2 - x1 * x2) % P == 0

    __hash__ = None

    def encode(self):
        """32 bytes (RFC 9496, 4.3.2)."""
        x0, y0, z0, t0 = self.coordinates
        u1, u2 = (z0 + y0) * (z0 - y0), x0 * y0
        _, invsqrt = sqrt_ratio(1, u1 * u2 * u2 % P)
        den1, den2 = invsqrt * u1, invsqrt * u2
        z_inv = den1 * den2 * t0
        if is_negative(t0 * z_inv):
            x, y, den_inv = y0 * SQRT_M1, x0 * SQRT_M1, den1 * INVSQRT_A_MINUS_D
        else:
            x, y, den_inv = x0, y0, den2
        if is_negative(x * z_inv):
            y = -y
        return absolute(den_inv * (z0 - y)).to_bytes(32, "little")


IDENTITY = Point(0, 1, 1, 0)


def decode(encoded):
    """The point that 32 bytes encode (RFC 9496, 4.3.1). The identity is refused: protocol §1.3."""
    s = int.from_bytes(encoded, "little")
    if len(encoded) != 32 or s >= P or is_negative(s):
        raise Refused("not the encoding of a point")
    u1, u2 = 1 - s * s, 1 + s * s
    v = (-(D * u1 * u1) - u2 * u2) % P
    was_square, invsqrt = sqrt_ratio(1, v * u2 * u2 % P)
    den_x, den_y = invsqrt * u2, invsqrt * invsqrt * u2 * v
    x = absolute(2 * s * den_x)
    y = u1 * den_y % P
    if not was_square or is_negative(x * y) or y == 0 or s == 0:
        raise Refused("not the encoding of a point")
    return Point(x, y, 1, x * y)


BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def scalar_encode(scalar):
    return scalar.to_bytes(32, "little")


def scalar_decode(encoded):
    scalar = int.from_bytes(encoded, "little")
    if len(encoded) != 32 or scalar >= ORDER:
        raise Refused("not the encoding of a scalar")
    return scalar


def scalar_from_wide(encoded):
    """Reduces 64 bytes: protocol §1.3."""
    return int.from_bytes(encoded, "little") % ORDER


def normalised(scalar):
    """k or q − k, whichever is in [2^251, 2^252): protocol §22.3."""
    for candidate in (scalar, ORDER - scalar):
        if 1 << 251 <= candidate < 1 << 252:
            return candidate
    raise Refused("a scalar that has no normal form")


def random_scalar():
    """A secret scalar that has a normal form."""
    while True:
        scalar = scalar_from_wide(os.urandom(64))
        try:
            normalised(scalar)
        except Refused:
            continue
        return scalar
