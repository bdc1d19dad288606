"""The parts of libp2p that the project's nodes need of each other: protocol §23.

multistream-select, Noise (XX, 25519, ChaChaPoly, SHA256), yamux, the project's requests, gossipsub as a star, ping.
Connections are dialled, never accepted. Over asyncio.
"""

import asyncio
import hashlib
import hmac
import os
import struct
import time

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .ristretto import Refused
from .suite import Reader, lp, u64
from .wire import decode_fields, encode_fields, read_varint, varint

MULTISTREAM = "/multistream/1.0.0"
REQUEST = "/quiver/1/request"
GROUP = "/quiver/1/group"
PING = "/ipfs/ping/1.0.0"
CLOCK = "/quiver/1/clock"
MAX_MESSAGE = 1 << 20

NOISE_PAYLOAD = {1: ("key", "bytes"), 2: ("signature", "bytes")}
PUBLIC_KEY = {1: ("type", "number"), 2: ("data", "bytes")}
SUBSCRIPTION = {1: ("subscribe", "number"), 2: ("topic", "text")}
PUBLISHED = {2: ("data", "bytes"), 4: ("topic", "text")}
TOPIC = {1: ("topic", "text")}
RPC = {1: ("subscription", SUBSCRIPTION), 2: ("message", PUBLISHED), 3: ("control", {3: ("graft", TOPIC)})}


class Closed(ConnectionError):
    """A connection or a stream is over."""


def opened(cipher, nonce, sealed, aad):
    try:
        return cipher.decrypt(nonce, sealed, aad)
    except InvalidTag:
        raise Refused("a frame that the peer did not seal") from None


def raw(public_key):
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def multiaddr(address):
    """Host, port and the peer's name, if there is one, of /ip4/HOST/tcp/PORT[/p2p/NAME]."""
    parts = address.split("/")
    if len(parts) not in (5, 7) or parts[1] not in ("ip4", "ip6", "dns4", "dns6") or parts[3] != "tcp":
        raise Refused(f"not an address over TCP: {address}")
    return parts[2], int(parts[4]), parts[6] if len(parts) == 7 else None


def transport_name(ed25519):
    """The name of a node on the transport: the identity multihash of its public key."""
    return bytes([0, 36]) + encode_fields(PUBLIC_KEY, {"type": 1, "data": ed25519})


def peer_name(ed25519):
    """The same in base58."""
    key = transport_name(ed25519)
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    number, text = int.from_bytes(key, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = alphabet[digit] + text
    return "1" * (len(key) - len(key.lstrip(b"\0"))) + text


class Noise:
    """The Noise handshake as its initiator, and the frames after it: two bytes of length before each."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.rest = reader, writer, b""
        self.hash = self.chaining = b"Noise_XX_25519_ChaChaPoly_SHA256"
        self.key, self.nonce = None, 0
        self.mix_hash(b"")

    def mix_hash(self, data):
        self.hash = hashlib.sha256(self.hash + data).digest()

    def derive(self, secret):
        temporary = hmac.new(self.chaining, secret, hashlib.sha256).digest()
        first = hmac.new(temporary, b"\1", hashlib.sha256).digest()
        return first, hmac.new(temporary, first + b"\2", hashlib.sha256).digest()

    def mix_key(self, own, other):
        self.chaining, self.key = self.derive(own.exchange(X25519PublicKey.from_public_bytes(other)))
        self.nonce = 0

    def next_nonce(self):
        self.nonce += 1
        return bytes(4) + struct.pack("<Q", self.nonce - 1)

    def encrypt(self, plaintext):
        sealed = ChaCha20Poly1305(self.key).encrypt(self.next_nonce(), plaintext, self.hash)
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        plaintext = opened(ChaCha20Poly1305(self.key), self.next_nonce(), sealed, self.hash)
        self.mix_hash(sealed)
        return plaintext

    async def read_frame(self):
        try:
            length = struct.unpack(">H", await self.reader.readexactly(2))[0]
            return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise Closed("the peer has closed the connection") from None

    def write_frame(self, frame):
        self.writer.write(struct.pack(">H", len(frame)) + frame)

    async def handshake(self, identity):
        """Returns the peer's Ed25519 key."""
        ephemeral, static = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        # → e
        self.mix_hash(raw(ephemeral.public_key()))
        self.mix_hash(b"")
        self.write_frame(raw(ephemeral.public_key()))
        # ← e, ee, s, es
        message = await self.read_frame()
        their_ephemeral, sealed_static, sealed = message[:32], message[32:80], message[80:]
        self.mix_hash(their_ephemeral)
        self.mix_key(ephemeral, their_ephemeral)
        their_static = self.decrypt(sealed_static)
        self.mix_key(ephemeral, their_static)
        payload = decode_fields(NOISE_PAYLOAD, self.decrypt(sealed))
        key = decode_fields(PUBLIC_KEY, payload["key"])
        if key["type"] != 1:
            raise Refused("the peer's key is not Ed25519")
        try:
            signer = Ed25519PublicKey.from_public_bytes(key["data"])
            signer.verify(payload["signature"], b"noise-libp2p-static-key:" + their_static)
        except InvalidSignature:
            raise Refused("the peer's key did not sign its handshake") from None
        # → s, se
        signature = identity.sign(b"noise-libp2p-static-key:" + raw(static.public_key()))
        own_key = encode_fields(PUBLIC_KEY, {"type": 1, "data": raw(identity.public_key())})
        sealed_static = self.encrypt(raw(static.public_key()))
        self.mix_key(static, their_ephemeral)
        payload = encode_fields(NOISE_PAYLOAD, {"key": own_key, "signature": signature})
        self.write_frame(sealed_static + self.encrypt(payload))
        self.sending, self.receiving = map(ChaCha20Poly1305, self.derive(b""))
        self.sent = self.received = 0
        return key["data"]

    def write(self, data):
        for start in range(0, len(data), 65_000):
            nonce = bytes(4) + struct.pack("<Q", self.sent)
            self.write_frame(self.sending.encrypt(nonce, data[start:start + 65_000], b""))
            self.sent += 1

    async def readexactly(self, length):
        while len(self.rest) < length:
            frame = await self.read_frame()
            self.rest += opened(self.receiving, bytes(4) + struct.pack("<Q", self.received), frame, b"")
            self.received += 1
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken


class Plain:
    """A TCP connection before Noise, with the same reads and writes."""

    def __init__(self, reader, writer):
        self.reader, self.write = reader, writer.write

    async def readexactly(self, length):
        try:
            return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise Closed("the peer has closed the connection") from None


async def read_length(channel, limit):
    value = 0
    for place in range(5):
        byte = (await channel.readexactly(1))[0]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if value > limit:
                raise Refused("too long")
            return value
    raise Refused("a length without an end")


def line(text):
    encoded = text.encode() + b"\n"
    return varint(len(encoded)) + encoded


async def read_line(channel):
    return (await channel.readexactly(await read_length(channel, 1024))).decode("ascii", "replace").rstrip("\n")


async def select(channel, protocol):
    """multistream-select, as the one that proposes."""
    channel.write(line(MULTISTREAM) + line(protocol))
    if await read_line(channel) != MULTISTREAM or await read_line(channel) != protocol:
        raise Refused(f"the peer does not speak {protocol}")


async def answer(channel, protocols):
    """multistream-select, as the one that accepts; the protocol."""
    if await read_line(channel) != MULTISTREAM:
        raise Refused("no multistream-select")
    channel.write(line(MULTISTREAM))
    while True:
        proposed = await read_line(channel)
        if proposed in protocols:
            channel.write(line(proposed))
            return proposed
        channel.write(line("na"))


DATA, WINDOW_UPDATE, YAMUX_PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
WINDOW = 256 << 10
# §16: both directions together.
MAX_STREAMS = 64


class Stream:
    """A stream of a connection."""

    def __init__(self, muxer, number, flags):
        self.muxer, self.number, self.flags = muxer, number, flags
        self.buffer, self.news, self.ended, self.window = b"", asyncio.Event(), False, WINDOW
        self.queue, self.done = b"", False

    def write(self, data):
        self.queue += data
        self.flush()

    def flush(self):
        """Sends what the window allows."""
        while self.queue and self.window:
            piece = self.queue[: min(self.window, 16_384)]
            self.queue, self.window = self.queue[len(piece):], self.window - len(piece)
            self.muxer.frame(DATA, self.take_flags(), self.number, len(piece), piece)
        if self.done and not self.queue:
            self.muxer.frame(DATA, self.take_flags() | FIN, self.number, 0)
            self.done = False

    def take_flags(self):
        flags, self.flags = self.flags, 0
        return flags

    def close(self):
        """No more is written."""
        self.done = True
        self.flush()

    def reset(self):
        self.muxer.frame(WINDOW_UPDATE, RST, self.number, 0)
        self.end()

    def came(self, data):
        self.buffer += data
        if len(self.buffer) > MAX_MESSAGE + WINDOW:
            # Nobody reads what is behind a message.
            self.reset()
        self.news.set()

    def end(self):
        self.ended = True
        self.news.set()

    async def readexactly(self, length):
        while len(self.buffer) < length:
            if self.ended:
                raise Closed("the stream has ended")
            self.news.clear()
            await self.news.wait()
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken


class Muxer:
    """yamux over a Noise channel, as the one that dialled: its streams have odd numbers."""

    def __init__(self, channel, accept):
        self.channel, self.accept, self.streams, self.next, self.tasks = channel, accept, {}, 1, set()

    def frame(self, kind, flags, number, length, body=b""):
        self.channel.write(struct.pack(">BBHII", 0, kind, flags, number, length) + body)

    def open(self):
        stream = self.streams[self.next] = Stream(self, self.next, SYN)
        self.next += 2
        return stream

    async def run(self):
        try:
            while True:
                head = await self.channel.readexactly(12)
                version, kind, flags, number, length = struct.unpack(">BBHII", head)
                if version != 0 or kind > GO_AWAY or (kind == DATA and length > 1 << 20):
                    raise Refused("not a frame of yamux")
                body = await self.channel.readexactly(length) if kind == DATA else b""
                if kind == GO_AWAY:
                    raise Closed("the peer goes away")
                if kind == YAMUX_PING:
                    if flags & SYN:
                        self.frame(YAMUX_PING, ACK, 0, length)
                    continue
                self.take(kind, flags, number, length, body)
        finally:
            for stream in self.streams.values():
                stream.end()
            for task in list(self.tasks):
                task.cancel()

    def take(self, kind, flags, number, length, body):
        if flags & SYN and number % 2 == 0 and number not in self.streams and len(self.streams) < MAX_STREAMS:
            self.streams[number] = Stream(self, number, ACK)
            self.spawn(self.serve(self.streams[number]))
        stream = self.streams.get(number)
        if stream is None:
            return
        if kind == WINDOW_UPDATE:
            stream.window += length
            stream.flush()
        elif body:
            stream.came(body)
            # What came is read at once, so the peer may send as much again.
            self.frame(WINDOW_UPDATE, stream.take_flags(), number, len(body))
        if flags & (FIN | RST):
            stream.end()

    async def serve(self, stream):
        try:
            await self.accept(stream)
        except (Refused, Closed):
            stream.reset()
        finally:
            self.forget(stream)

    def forget(self, stream):
        self.streams.pop(stream.number, None)

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


async def write_request(stream, number, message):
    """§23.3: length, the number of the request, the message."""
    stream.write(struct.pack(">I", len(message)) + number + message)


async def read_request(stream):
    length = struct.unpack(">I", await stream.readexactly(4))[0]
    if length > MAX_MESSAGE:
        raise Refused("a message that is too long")
    number = await stream.readexactly(16)
    return number, await stream.readexactly(length)


class Seen:
    """§23.4: the group's messages by their ids, of the last ten seconds: each comes by every leader."""

    def __init__(self):
        self.until = {}

    def is_new(self, data):
        now, name = time.monotonic(), hashlib.sha256(data).digest()[:20]
        self.until = {one: until for one, until in self.until.items() if until > now}
        known = name in self.until
        self.until.setdefault(name, now + 10)
        return not known


class Connection:
    """A connection to a node that was dialled. `receive(message, by_gossip)` takes what comes; `vouch(statement)` signs
    what this node says of its clock, or returns nothing without a key."""

    def __init__(self, receive, topic=None, seen=None, vouch=lambda statement: b""):
        self.receive, self.topic, self.group, self.vouch = receive, topic, None, vouch
        self.peer, self.writer, self.seen = None, None, seen or Seen()

    async def dial(self, address, identity):
        host, port, named = multiaddr(address)
        reader, self.writer = await asyncio.open_connection(host, port)
        plain = Plain(reader, self.writer)
        await select(plain, "/noise")
        noise = Noise(reader, self.writer)
        key = await noise.handshake(identity)
        self.peer, self.ends = peer_name(key), (transport_name(key), transport_name(raw(identity.public_key())))
        if named not in (None, self.peer):
            raise Refused(f"{self.peer} answers there, not {named}")
        await select(noise, "/yamux/1.0.0")
        self.muxer = Muxer(noise, self.accept)

    async def run(self):
        """Until the connection ends."""
        try:
            if self.topic:
                self.muxer.spawn(self.subscribe())
            await self.muxer.run()
        except (Closed, Refused, OSError):
            pass
        finally:
            self.writer.close()

    async def accept(self, stream):
        protocol = await answer(stream, [REQUEST, PING, CLOCK] + ([GROUP] if self.topic else []))
        if protocol == REQUEST:
            number, message = await read_request(stream)
            # An empty response: whatever there is to say goes in a request of its own.
            await write_request(stream, number, b"")
            stream.close()
            self.receive(message, False)
        elif protocol == CLOCK:
            # §16.1: a leader publishes to whoever signed its clock (§13.7).
            nonce, unix = await stream.readexactly(16), u64(int(time.time()))
            asker, teller = self.ends
            stream.write(unix + self.vouch(nonce + lp(asker) + lp(teller) + unix))
            stream.close()
        elif protocol == PING:
            while True:
                stream.write(await stream.readexactly(32))
        else:
            while True:
                rpc = await stream.readexactly(await read_length(stream, MAX_MESSAGE + 2048))
                self.receive_rpc(rpc)

    def receive_rpc(self, rpc):
        for published in repeated(RPC, rpc, "message"):
            # §23.4: eight random bytes, then the message.
            if published["topic"] == self.topic and len(published["data"]) > 8 and self.seen.is_new(published["data"]):
                self.receive(published["data"][8:], True)

    def send(self, message):
        """Sends a message to this peer alone."""
        self.muxer.spawn(self.request(message))

    async def request(self, message):
        stream = self.muxer.open()
        try:
            await select(stream, REQUEST)
            await write_request(stream, os.urandom(16), message)
            stream.close()
            _, response = await read_request(stream)
            if response:
                self.receive(response, False)
        except (Refused, Closed):
            stream.reset()
        finally:
            self.muxer.forget(stream)

    async def subscribe(self):
        """Opens the stream of what this node publishes, and subscribes to the group's topic."""
        stream = self.muxer.open()
        await select(stream, GROUP)
        self.group = stream
        self.write_rpc({"subscription": {"subscribe": 1, "topic": self.topic}})
        self.write_rpc({"control": {"graft": {"topic": self.topic}}})

    def write_rpc(self, rpc):
        encoded = encode_fields(RPC, rpc)
        self.group.write(varint(len(encoded)) + encoded)

    def publish(self, data):
        """Sends to the group, by way of this peer, eight random bytes and a message."""
        if self.group:
            self.seen.is_new(data)
            self.write_rpc({"message": {"data": data, "topic": self.topic}})

    def close(self):
        if self.writer:
            self.writer.close()


def repeated(fields, encoded, wanted):
    """All values of a field that may stand several times: one at a time, so that the decoder needs no lists."""
    number, inner = next((number, kind) for number, (called, kind) in fields.items() if called == wanted)
    reader, values = Reader(encoded), []
    while reader.rest:
        key = read_varint(reader)
        if key & 7 == 0:
            read_varint(reader)
        elif key & 7 == 2:
            value = reader.take(read_varint(reader))
            if key >> 3 == number:
                values.append(decode_fields(inner, value))
        else:
            raise Refused("not protobuf")
    return values
