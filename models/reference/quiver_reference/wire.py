"""Messages (protobuf, proto/message/proto/quiver/v1/message.proto) as dictionaries; an absent field is absent.

The encoder and decoder know the two wire types that the messages use besides `fixed64`: varints, and bytes with
their length.
"""

from .ristretto import Refused
from .suite import Reader

# Of each message: field number, name, kind. A kind is "bytes", "text", "number", "maybe" (a number that
# is `optional`), "fixed64", or another message.
SPARE = {1: ("q", "number"), 2: ("point", "bytes"), 3: ("signature", "bytes")}
ENTRY = {1: ("slot", "number"), 2: ("q", "maybe"), 3: ("wrap", "bytes")}
SOURCE = {1: ("drone", "bytes"), 2: ("signature", "bytes")}
HEADER = {
    1: ("group", "text"), 2: ("leader", "bytes"), 3: ("term", "number"), 4: ("counter", "number"),
    5: ("prev", "bytes"), 6: ("nonce", "bytes"), 7: ("issued_at", "number"), 8: ("valid_until", "number"),
    9: ("strategy", "number"), 10: ("kind", "number"), 11: ("point", "bytes"), 12: ("height", "number"),
    13: ("removed", "bytes"), 14: ("added", "bytes"), 15: ("absent", "bytes"), 16: ("roster_hash", "bytes"),
    17: ("revocation_number", "number"), 18: ("entries_root", "bytes"), 19: ("tag", "bytes"),
    20: ("signature", "bytes"), 21: ("changes", "bytes"), 22: ("kem", "number"), 23: ("kem_terms", "number"),
}
KEM_TERM = {1: ("set", "number"), 2: ("g", "number")}
KEM_OFFER = {1: ("set", "number"), 2: ("key", "bytes"), 3: ("g", "number"), 4: ("tag", "bytes"), 5: ("ahead", "number")}
BODIES = {
    2: ("enrol_hello", {1: ("nonce", "bytes")}),
    3: ("enrol_cookie", {1: ("nonce", "bytes"), 2: ("cookie", "bytes")}),
    4: ("enrol_request", {1: ("nonce", "bytes"), 2: ("cookie", "bytes"), 3: ("request", "bytes")}),
    5: ("enrol_reply", {1: ("request_digest", "bytes"), 2: ("reply", "bytes")}),
    6: ("refusal", {1: ("reason", "number"), 2: ("reference", "bytes"), 3: ("retry_after_ms", "number")}),
    7: ("join_hello", {1: ("group", "text"), 2: ("drone", "bytes"), 3: ("nonce", "bytes"), 4: ("kem", "number")}),
    8: ("join_challenge", {1: ("nonce", "bytes"), 2: ("challenge", "bytes"), 3: ("leader", "bytes"),
                           4: ("revocation_number", "number"), 5: ("kem", KEM_TERM)}),
    9: ("join_request", {1: ("group", "text"), 2: ("drone", "bytes"), 3: ("nonce", "bytes"), 4: ("challenge", "bytes"),
                         5: ("ephemeral", "bytes"), 6: ("spare", SPARE), 7: ("signature", "bytes"), 8: ("kem", KEM_OFFER)}),
    10: ("welcome", {1: ("nonce", "bytes"), 2: ("header", HEADER), 3: ("entry", ENTRY), 4: ("path", "bytes")}),
    11: ("ack", {1: ("slot", "number"), 2: ("term", "number"), 3: ("counter", "number"), 4: ("tag", "bytes")}),
    12: ("rekey", {1: ("header", HEADER), 2: ("entry", ENTRY), 3: ("delta", "bytes"), 4: ("path", "bytes"),
                   5: ("newcomers", "bytes")}),
    13: ("catch_up_request", {1: ("group", "text"), 2: ("slot", "number"), 3: ("number", "bytes"), 4: ("held", "bytes"),
                              5: ("tag", "bytes")}),
    14: ("catch_up_reply", {1: ("number", "bytes"), 2: ("header", HEADER), 3: ("entry", ENTRY), 4: ("path", "bytes"),
                            5: ("tag", "bytes")}),
    15: ("spare_publication", {1: ("group", "text"), 2: ("slot", "number"), 3: ("spare", SPARE)}),
    16: ("spare_ack", {1: ("q", "number"), 2: ("tag", "bytes")}),
    17: ("leave", {1: ("group", "text"), 2: ("slot", "number"), 3: ("held", "bytes"), 4: ("signature", "bytes")}),
    18: ("eviction_notice", {1: ("group", "text"), 2: ("leader", "bytes"), 3: ("term", "number"),
                             4: ("counter", "number"), 5: ("serials", "bytes"), 6: ("signature", "bytes")}),
    19: ("group_message", {1: ("group", "text"), 2: ("term", "number"), 3: ("counter", "number"), 4: ("slot", "number"),
                           5: ("boot_no", "number"), 6: ("salt", "bytes"), 7: ("number", "number"),
                           8: ("channel", "text"), 9: ("ciphertext", "bytes"), 10: ("source", SOURCE),
                           11: ("hedge", "fixed64")}),
    20: ("revocation_query", {1: ("number", "number"), 2: ("max_len", "number")}),
    21: ("revocation_list", {1: ("list", "bytes")}),
    24: ("equivocation_proof", {1: ("first", HEADER), 2: ("second", HEADER)}),
    37: ("join_ciphertext", {1: ("nonce", "bytes"), 2: ("term", KEM_TERM), 3: ("ciphertext", "bytes")}),
    38: ("short_rekey", {1: ("term", "number"), 2: ("counter", "number"), 3: ("prev", "bytes"), 4: ("nonce", "bytes"),
                         5: ("issued_at", "number"), 6: ("lifetime", "number"), 7: ("point", "bytes"),
                         8: ("removed", "bytes"), 9: ("added", "bytes"), 10: ("changes", "bytes"),
                         11: ("roster_hash", "bytes"), 12: ("revocation_number", "number"), 13: ("tag", "bytes"),
                         14: ("signature", "bytes"), 15: ("delta", "bytes")}),
}
NUMBERS = {kind: (number, fields) for number, (kind, fields) in BODIES.items()}
# Fields whose absence says something: `optional` ones, and those of a `oneof`. A spare point has a q, an entry may.
OPTIONAL = [("path", "bytes"), ("delta", "bytes"), ("q", "maybe")]
REASONS = (
    "unspecified", "bad cookie", "token expired", "token reused", "token revoked", "token foreign", "name taken",
    "malformed", "busy", "not authorised", "revoked", "evicted", "expired", "rejoin", "full", "not ready",
    "wrong group", "bad signature", "unknown authority", "round over", "admission only", "token spent",
    "ordinal taken", "no second factor", "ml-kem-768", "ml-kem-1024", "second factor lost",
)


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def read_varint(reader, most=10):
    value = 0
    for place in range(most):
        byte = reader.number(1)
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value
    raise Refused("a number without an end")


def read_shortest(reader, most=10):
    """A number in as few bytes as possible."""
    before = reader.rest
    value = read_varint(reader, most)
    if varint(value) != before[: len(before) - len(reader.rest)]:
        raise Refused("a number in more bytes than it needs")
    return value


def encode_fields(fields, values):
    encoded = b""
    for number, (name, kind) in fields.items():
        # §22.1: what has its default is left out, unless its absence says something.
        if name not in values or (values[name] in (0, b"", "") and (name, kind) not in OPTIONAL):
            continue
        value = values[name]
        if kind in ("number", "maybe"):
            encoded += varint(number << 3) + varint(value)
        elif kind == "fixed64":
            encoded += varint(number << 3 | 1) + value.to_bytes(8, "little")
        else:
            if kind == "text":
                value = value.encode()
            elif kind != "bytes":
                value = encode_fields(kind, value)
            encoded += varint(number << 3 | 2) + varint(len(value)) + value
    return encoded


def decode_fields(fields, encoded):
    """Absent numbers are 0 and absent bytes empty, but not messages. Unknown fields are skipped."""
    reader, values, seen = Reader(encoded), {}, set()
    while reader.rest:
        key = read_varint(reader)
        number, form = key >> 3, key & 7
        if form == 0:
            value = read_varint(reader)
        elif form == 1:
            value = int.from_bytes(reader.take(8), "little")
        elif form == 2:
            value = reader.take(read_varint(reader))
        elif form == 5:
            value = int.from_bytes(reader.take(4), "little")
        else:
            raise Refused("not protobuf")
        if number not in fields:
            continue
        name, kind = fields[number]
        if form != (0 if kind in ("number", "maybe") else 1 if kind == "fixed64" else 2):
            raise Refused(f"{name} has another type")
        if kind == "text":
            try:
                value = value.decode()
            except UnicodeDecodeError:
                raise Refused(f"{name} is no text") from None
        elif isinstance(kind, dict):
            value = decode_fields(kind, value)
        values[name] = value
        seen.add(name)
    for name, kind in fields.values():
        if name not in seen and (name, kind) not in OPTIONAL:
            if isinstance(kind, str):
                values[name] = {"text": "", "bytes": b""}.get(kind, 0)
    return values


def encode(deployment, kind, values):
    """A message of this deployment."""
    number, fields = NUMBERS[kind]
    body = encode_fields(fields, values)
    tagged = varint(1 << 3 | 2) + varint(8) + deployment.fingerprint[:8]
    return tagged + varint(number << 3 | 2) + varint(len(body)) + body


def decode(deployment, encoded):
    """Kind and fields of a message; (None, {}) for one that an edge has no use for."""
    fields = {1: ("deployment", "bytes")} | {number: (kind, inner) for number, (kind, inner) in BODIES.items()}
    values = decode_fields(fields, encoded)
    if values["deployment"] != deployment.fingerprint[:8]:
        raise Refused("a message of another deployment")
    bodies = {name: value for name, value in values.items() if name != "deployment"}
    if not bodies:
        return None, {}
    # §22.1: a message has one encoding, so one with two bodies, or with unknown fields, is none.
    if len(bodies) > 1 or encode_fields(fields, values) != encoded:
        raise Refused("not the shortest encoding")
    return next(iter(bodies.items()))
