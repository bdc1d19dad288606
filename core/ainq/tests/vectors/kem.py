"""Makes kem.json: the second factor κ from the exchange to the start of a chain, written from the rules in
docs/protocol.md (section 24) with hashlib, hmac and the package kyber-py, without a line in common with the crate.

    pip install kyber-py==1.2.0
    python3 kem.py > kem.json
"""

import hashlib
import hmac
import json

from kyber_py.ml_kem import ML_KEM_768, ML_KEM_1024

SUITE = b"QUIVER-AINQ-RISTRETTO255-SHA512-v1"
# The generator of ristretto255 (RFC 9496), for a master key that nobody uses.
MASTER = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
SETS = {"ml-kem-768": (1, ML_KEM_768), "ml-kem-1024": (2, ML_KEM_1024)}


def draw(label, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(b"quiver kem vector " + label.encode()).digest(length)


def lp(data):
    return len(data).to_bytes(4, "big") + data


def number(value, length=8):
    return value.to_bytes(length, "big")


def hashed(domain, *parts):
    return hashlib.sha256(lp(domain) + b"".join(parts)).digest()


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def prf(key, label, *parts):
    return mac(key, lp(SUITE) + lp(label) + b"".join(parts))


def vector(name, case, g):
    code, scheme = SETS[name]
    label = f"{name} {case}"
    deployment, group = f"deployment-{case}".encode(), f"group-{case}".encode()
    leader, drone = draw(label + " leader"), draw(label + " drone")
    seed, m = draw(label + " seed", 64), draw(label + " m")
    ek, dk = scheme._keygen_internal(seed[:32], seed[32:])
    shared, ct = scheme._encaps_internal(ek, m)
    assert scheme.decaps(dk, ct) == shared
    fingerprint = hashed(b"quiver/1 deployment", lp(SUITE), lp(deployment), MASTER)
    exchange = hashed(b"quiver/1 kem exchange", lp(ek), lp(ct))
    parts = (lp(SUITE), fingerprint, lp(group), leader, drone, bytes([code]), exchange)
    key = mac(hashed(b"quiver/1 kem", *parts), shared)
    terms = []
    secret, context = draw(label + " T"), draw(label + " ctx")
    for step in range(4):
        count = g + step
        salt = hashed(b"quiver/1 kem pair", context, bytes([code]), number(count))
        chain = mac(salt, lp(secret) + lp(key))
        terms.append({
            "g": count,
            "key": key.hex(),
            "tag": prf(key, b"kem tag")[:16].hex(),
            "chain": chain.hex(),
            "auth": prf(chain, b"auth").hex(),
        })
        key = prf(key, b"kem step", leader, number(count))
    return {
        "set": name,
        "deployment": deployment.decode(),
        "master": MASTER.hex(),
        "group": group.decode(),
        "leader": leader.hex(),
        "drone": drone.hex(),
        "seed": seed.hex(),
        "message": m.hex(),
        "ciphertext": ct.hex(),
        "shared": shared.hex(),
        "secret": secret.hex(),
        "context": context.hex(),
        "terms": terms,
    }


if __name__ == "__main__":
    cases = [("ml-kem-768", 1, 1), ("ml-kem-768", 2, 255), ("ml-kem-1024", 3, 1), ("ml-kem-1024", 4, (1 << 40) - 2)]
    print(json.dumps([vector(*case) for case in cases], indent=1))
