#!/usr/bin/env python3
"""Writes vectors/frames.txt: frames that pymavlink packs and signs, and what it says of them.

    python3 -m venv venv && venv/bin/pip install -r deploy/mavlink/requirements.txt
    venv/bin/python proto/mavlink/tests/vectors/frames.py > proto/mavlink/tests/vectors/frames.txt
"""
import hashlib
from importlib.metadata import version

from pymavlink.dialects.v10 import all as v10
from pymavlink.dialects.v20 import all as v20

KEY = hashlib.sha256(b"a key for vectors").digest()
TIMESTAMP = 0x0000_1234_5678_9ABC
LINK = 3


def messages(dialect):
    """One of each kind that matters: short and long, with and without target, ending in zeros or not."""
    m = dialect
    return [
        m.MAVLink_heartbeat_message(2, 3, 0x51, 7, 4, 3),
        m.MAVLink_heartbeat_message(0, 0, 0, 0, 0, 0),
        m.MAVLink_attitude_message(123456, 0.1, -0.2, 3.0, 0.01, -0.02, 0.03),
        m.MAVLink_global_position_int_message(123456, 473977418, 85455939, 488000, 12000, 10, -20, 3, 9000),
        m.MAVLink_command_long_message(7, 1, 400, 0, 1, 0, 0, 0, 0, 0, 0),
        m.MAVLink_command_long_message(0, 0, 512, 0, 0, 0, 0, 0, 0, 0, 0),
        m.MAVLink_param_set_message(9, 1, b"MPC_XY_VEL_MAX", 12.5, 9),
        m.MAVLink_mission_request_list_message(1, 0),
        m.MAVLink_mission_count_message(250, 190, 17),
        m.MAVLink_set_mode_message(3, 1, 0x04040000),
        m.MAVLink_statustext_message(2, b"Quiver: no valid group key, nothing passes"),
        m.MAVLink_radio_status_message(200, 190, 73, 40, 38, 5, 2),
    ]


def tunnel(datagram, kind=0xD156, length=None):
    length = len(datagram) if length is None else length
    return v20.MAVLink_tunnel_message(0, 0, kind, length, list(datagram.ljust(128, b"\0")))


def pack(dialect, message, mavlink1, sequence, sign=False):
    link = dialect.MAVLink(None, srcSystem=42, srcComponent=191)
    link.robust_parsing = False
    link.seq = sequence
    if sign:
        link.signing.secret_key = KEY
        link.signing.sign_outgoing = True
        link.signing.link_id = LINK
        link.signing.timestamp = TIMESTAMP
    packed = bytes(message.pack(link, force_mavlink1=mavlink1))
    check = dialect.MAVLink(None)
    if sign:
        check.signing.secret_key = KEY
        check.signing.timestamp = TIMESTAMP - 1
    check.parse_buffer(packed)
    return packed


def describe(message):
    names = message.get_fieldnames()
    target = [getattr(message, n, 0) if n in names else 0 for n in ("target_system", "target_component")]
    payload = bytes(message.get_payload())
    return f"{message.get_msgId()} {target[0]} {target[1]} {payload.hex() or '-'} {message.get_crc():04x}"


print(f"# Made by vectors/frames.py with pymavlink {version('pymavlink')}, dialect `all`.")
print(f"# System 42, component 191. Key {KEY.hex()}, link {LINK}, timestamp {TIMESTAMP}.")
print("# frame: version, name, sequence, message id, target system and component, payload, check sum, frame")
for dialect, number in ((v10, 1), (v20, 2)):
    for sequence, message in enumerate(messages(dialect)):
        packed = pack(dialect, message, number == 1, sequence)
        print("frame", number, message.get_type(), sequence, describe(message), packed.hex())
high = v20.MAVLink_device_op_write_message(8, 2, 77, 1, 0, 1, b"spi1", 5, 6, [1, 2] + [0] * 126)
packed = pack(v20, high, False, 200)
print("frame", 2, high.get_type(), 200, describe(high), packed.hex())
print("# signed: name, frame as it is unsigned, the same signed")
for sequence, message in enumerate(messages(v20)):
    plain = pack(v20, message, False, sequence)
    print("signed", message.get_type(), plain.hex(), pack(v20, message, False, sequence, sign=True).hex())
print("# tunnel: datagram, frame of sequence 9")
for datagram in (b"\x01", b"a datagram that ends in zeros" + bytes(5), bytes(range(128)), bytes(3)):
    print("tunnel", datagram.hex(), pack(v20, tunnel(datagram), False, 9).hex())
print("# other: tunnels that carry no datagram: of another type, longer than it can be, shorter than what is in it")
for message in (tunnel(b"one", kind=0x8001), tunnel(b"one", length=129), tunnel(b"one", length=2)):
    print("other", pack(v20, message, False, 9).hex())
