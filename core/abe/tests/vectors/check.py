"""Confirms the vectors of quiver-abe from their bytes, without any of its code: `python3 check.py`.

BLS12-381 from its definition (Fp12 is Fp[w] / (w^12 - 2 w^6 + 2), so that u = w^6 - 1); decryption from the papers: eprint
2006/309, section 4, and eprint 2022/1415, figure 1.
"""

import hashlib
import hmac
import pathlib
import sys

P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
X = 0xD201000000010000  # the curve's parameter is -X
HALF = pow(2, -1, R)

G1_BYTES = bytes.fromhex(
    "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
)
G2_BYTES = bytes.fromhex(
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
)


class Fp:
    """Integers modulo p."""

    ZERO = 0

    @staticmethod
    def mul(a, b):
        return a * b % P

    @staticmethod
    def add(a, b):
        return (a + b) % P

    @staticmethod
    def sub(a, b):
        return (a - b) % P

    @staticmethod
    def inv(a):
        return pow(a, -1, P)


class Fp2:
    """Pairs (a, b) for a + b u, with u^2 = -1."""

    ZERO = (0, 0)

    @staticmethod
    def mul(a, b):
        return (a[0] * b[0] - a[1] * b[1]) % P, (a[0] * b[1] + a[1] * b[0]) % P

    @staticmethod
    def add(a, b):
        return (a[0] + b[0]) % P, (a[1] + b[1]) % P

    @staticmethod
    def sub(a, b):
        return (a[0] - b[0]) % P, (a[1] - b[1]) % P

    @staticmethod
    def inv(a):
        norm = Fp.inv(a[0] * a[0] + a[1] * a[1])
        return a[0] * norm % P, -a[1] * norm % P

    @staticmethod
    def sqrt(a):
        norm = pow(a[0] * a[0] + a[1] * a[1], (P + 1) // 4, P)
        for sign in (norm, -norm):
            square = (a[0] + sign) * Fp.inv(2) % P
            x = pow(square, (P + 1) // 4, P)
            if x * x % P == square and x:
                return x, a[1] * Fp.inv(2 * x) % P
        raise ValueError("not a square")


class Fp12:
    """Lists of twelve coefficients, that of w^0 first."""

    ZERO = [0] * 12
    ONE = [1] + [0] * 11

    @staticmethod
    def mul(a, b):
        product = [0] * 23
        for i, x in enumerate(a):
            if x:
                for j, y in enumerate(b):
                    product[i + j] += x * y
        for i in range(22, 11, -1):
            product[i - 6] += 2 * product[i]
            product[i - 12] -= 2 * product[i]
        return [x % P for x in product[:12]]

    @staticmethod
    def add(a, b):
        return [(x + y) % P for x, y in zip(a, b)]

    @staticmethod
    def sub(a, b):
        return [(x - y) % P for x, y in zip(a, b)]

    @staticmethod
    def power(a, exponent):
        result = Fp12.ONE
        for bit in bin(exponent)[2:]:
            result = Fp12.mul(result, result)
            if bit == "1":
                result = Fp12.mul(result, a)
        return result

    @staticmethod
    def inv(a):
        """Euclid's algorithm for polynomials."""
        degree = lambda q: max((i for i, x in enumerate(q) if x), default=0)
        low, high = a + [0], [2, 0, 0, 0, 0, 0, P - 2, 0, 0, 0, 0, 0, 1]
        of_low, of_high = [1] + [0] * 12, [0] * 13
        while degree(low):
            top = degree(low)
            rest, of_rest = high[:], of_high[:]
            for shift in range(degree(high) - top, -1, -1):
                quotient = rest[top + shift] * Fp.inv(low[top]) % P
                for i in range(top + 1):
                    rest[i + shift] = (rest[i + shift] - quotient * low[i]) % P
                for i in range(13 - shift):
                    of_rest[i + shift] = (of_rest[i + shift] - quotient * of_low[i]) % P
            low, high, of_low, of_high = rest, low, of_rest, of_low
        scale = Fp.inv(low[0])
        return [x * scale % P for x in of_low[:12]]


def add(field, a, b):
    """Addition of affine points, None being the identity."""
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if field.add(a[1], b[1]) == field.ZERO:
            return None
        slope = tangent(field, a)
    else:
        slope = field.mul(field.sub(b[1], a[1]), field.inv(field.sub(b[0], a[0])))
    x = field.sub(field.sub(field.mul(slope, slope), a[0]), b[0])
    return x, field.sub(field.mul(slope, field.sub(a[0], x)), a[1])


def tangent(field, a):
    square = field.mul(a[0], a[0])
    return field.mul(field.add(field.add(square, square), square), field.inv(field.add(a[1], a[1])))


def times(field, point, scalar):
    scalar, result = scalar % R, None
    while scalar:
        if scalar & 1:
            result = add(field, result, point)
        point = add(field, point, point)
        scalar >>= 1
    return result


def total(*terms):
    """The sum of scalar times point in G1."""
    result = None
    for scalar, point in terms:
        result = add(Fp, result, times(Fp, point, scalar))
    return result


def decode(data):
    """A compressed point of G1 (48 bytes) or G2 (96 bytes)."""
    larger = bool(data[0] & 0x20)
    data = bytes([data[0] & 0x1F]) + data[1:]
    if len(data) == 48:
        x = int.from_bytes(data, "big")
        y = pow(x**3 + 4, (P + 1) // 4, P)
        assert y * y % P == (x**3 + 4) % P
        return x, y if (y > P - y) == larger else P - y
    x = int.from_bytes(data[48:], "big"), int.from_bytes(data[:48], "big")
    y = Fp2.sqrt(Fp2.add(Fp2.mul(Fp2.mul(x, x), x), (4, 4)))
    negative = Fp2.sub(Fp2.ZERO, y)
    return x, y if (y[::-1] > negative[::-1]) == larger else negative


def encode(element):
    """Six elements of Fp2, the highest first, and in each the coefficient of u first."""
    encoded = b""
    for power in (5, 3, 1, 4, 2, 0):
        real, imaginary = (element[power] + element[power + 6]) % P, element[power + 6]
        encoded += imaginary.to_bytes(48, "big") + real.to_bytes(48, "big")
    return encoded


def untwist(element, power):
    """An element of Fp2, divided by w^power."""
    w = [int(i == power) for i in range(12)]
    lifted = [(element[0] - element[1]) % P, 0, 0, 0, 0, 0, element[1], 0, 0, 0, 0, 0]
    return Fp12.mul(lifted, Fp12.inv(w))


def line(a, b, at):
    """The line through two points, or the tangent of one, evaluated at a third."""
    if a[0] == b[0]:
        slope = tangent(Fp12, a)
    else:
        slope = Fp12.mul(Fp12.sub(b[1], a[1]), Fp12.inv(Fp12.sub(b[0], a[0])))
    return Fp12.sub(Fp12.mul(slope, Fp12.sub(at[0], a[0])), Fp12.sub(at[1], a[1]))


def miller(p, q):
    at = [p[0]] + [0] * 11, [p[1]] + [0] * 11
    q = untwist(q[0], 2), untwist(q[1], 3)
    point, value = q, Fp12.ONE
    for bit in bin(X)[3:]:
        value = Fp12.mul(Fp12.mul(value, value), line(point, point, at))
        point = add(Fp12, point, point)
        if bit == "1":
            value = Fp12.mul(value, line(point, q, at))
            point = add(Fp12, point, q)
    return Fp12.inv(value)


def pairings(pairs):
    """The product of the pairings, cubed as libraries have it."""
    value = Fp12.ONE
    for p, q in pairs:
        value = Fp12.mul(value, miller(p, q))
    return encode(Fp12.power(value, 3 * (P**12 - 1) // R))


def prefixed(data):
    return len(data).to_bytes(4, "big") + data


def secret(scheme, ciphertext, element):
    salt = hashlib.sha256(prefixed(b"QUIVER-ABE-v1 ciphertext") + prefixed(ciphertext)).digest()
    key = hmac.digest(salt, element, "sha256")
    return hmac.digest(key, prefixed(scheme.encode()) + prefixed(b"secret"), "sha256")


def elements(data, *lengths):
    """Points of these lengths, which stand at the end."""
    data, points = data[len(data) - sum(lengths) :], []
    for length in lengths:
        points.append(decode(data[:length]))
        data = data[length:]
    return points


# The leaves are alpha, alpha, charlie, bravo, with the shares f(1), f(2), f(2), f(3) of a line f. So
# f(0) = 3/2 f(1) - 1/2 f(3) through alpha and bravo, and f(0) = 2 f(1) - f(2) through alpha alone.
# The attributes are alpha and bravo, in this order.


def gpsw06(key, ciphertext):
    d = elements(key, 96, 96, 96, 96)
    alpha, bravo = elements(ciphertext, 48, 48)
    yield [(total((3 * HALF, alpha)), d[0]), (total((-HALF, bravo)), d[3])]
    yield [(total((2, alpha)), d[0]), (total((-1, alpha)), d[1])]


def fabeo22_kp(key, ciphertext):
    *sk1, first, second = elements(key, 48, 48, 48, 48, 96, 96)
    alpha, bravo, ct2 = elements(ciphertext, 48, 48, 96)
    yield [
        (total((3 * HALF, sk1[0]), (-HALF, sk1[3])), ct2),
        (total((-3 * HALF, alpha), (HALF, bravo)), first),
    ]
    yield [
        (total((2, sk1[0]), (-1, sk1[1])), ct2),
        (total((-2, alpha)), first),
        (total((1, alpha)), second),
    ]


def fabeo22_cp(key, ciphertext):
    sk1, alpha, bravo, sk3 = elements(key, 48, 48, 48, 96)
    ct1, first, second, *ct3 = elements(ciphertext, 96, 96, 96, 48, 48, 48, 48)
    yield [
        (sk1, ct1),
        (total((3 * HALF, alpha), (-HALF, bravo)), first),
        (total((-3 * HALF, ct3[0]), (HALF, ct3[3])), sk3),
    ]
    yield [
        (sk1, ct1),
        (total((2, alpha)), first),
        (total((-1, alpha)), second),
        (total((-2, ct3[0]), (1, ct3[1])), sk3),
    ]


def confirm(scheme, ways):
    text = (pathlib.Path(__file__).parent / f"{scheme}.txt").read_text()
    vectors = {name: bytes.fromhex(value) for name, value in (row.split(" = ") for row in text.splitlines())}
    parameters, key, ciphertext = vectors["parameters"], vectors["key"], vectors["ciphertext"]
    authority = hashlib.sha256(prefixed(b"QUIVER-ABE-v1 authority") + prefixed(parameters)).digest()
    for name in ("master key", "key", "ciphertext"):
        assert vectors[name][3:35] == authority, f"{scheme}: the authority in the {name}"
    # The master key ends with the exponent of e(g1, g2), and the parameters with the power.
    exponent = int.from_bytes(vectors["master key"][-32:], "big")
    power = pairings([(times(Fp, decode(G1_BYTES), exponent), decode(G2_BYTES))])
    assert parameters[-576:] == power, f"{scheme}: the parameters"
    for pairs in ways(key, ciphertext):
        assert secret(scheme, ciphertext, pairings(pairs)) == vectors["secret"], f"{scheme}: the secret"
    print(f"{scheme}: confirmed")


if __name__ == "__main__":
    confirm("gpsw06", gpsw06)
    confirm("fabeo22-kp", fabeo22_kp)
    confirm("fabeo22-cp", fabeo22_cp)
    sys.exit(0)
