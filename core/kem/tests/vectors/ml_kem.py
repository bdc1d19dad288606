"""Makes ml_kem.json: key pairs, encapsulations and decapsulations of ML-KEM out of given randomness, by the package
kyber-py (pure Python, written from FIPS 203), which shares nothing with the implementation under test.

    pip install kyber-py==1.2.0
    python3 ml_kem.py > ml_kem.json
"""

import hashlib
import json

from kyber_py.ml_kem import ML_KEM_768, ML_KEM_1024


def draw(label, length):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(b"quiver ml-kem vector " + label.encode()).digest(length)


def vector(name, scheme, number):
    label = f"{name} {number}"
    d, z, m = draw(label + " d", 32), draw(label + " z", 32), draw(label + " m", 32)
    ek, dk = scheme._keygen_internal(d, z)
    shared, ct = scheme._encaps_internal(ek, m)
    assert scheme.decaps(dk, ct) == shared
    # One bit of the ciphertext turned: FIPS 203 makes a secret of z and the ciphertext.
    altered = bytearray(ct)
    altered[(97 * number) % len(ct)] ^= 1 << number % 8
    return {
        "set": name,
        "seed": (d + z).hex(),
        "message": m.hex(),
        "key": ek.hex(),
        "ciphertext": ct.hex(),
        "shared": shared.hex(),
        "altered": bytes(altered).hex(),
        "rejected": scheme.decaps(dk, bytes(altered)).hex(),
    }


if __name__ == "__main__":
    sets = [("ml-kem-768", ML_KEM_768), ("ml-kem-1024", ML_KEM_1024)]
    vectors = [vector(name, scheme, number) for name, scheme in sets for number in range(1, 4)]
    print(json.dumps(vectors, indent=1))
