"""The host's side: sockets for the lines and the air, standard input, and the pace of real time.

While the processor is busy, virtual time passes as fast as the host executes. While it is idle, `speed` cycles of virtual time
pass per cycle of real time, or idle time is skipped at once (`speed` 0), after a look at the sockets.

A busy host wakes a process later than it asked. What a chip has slept too long is taken off what it sleeps next: without that, a UART,
whose every byte is an alarm, would be slower than real time by as much as the host is busy.
"""

import selectors
import socket
import sys
import time
from collections.abc import Callable

from .schedule import HZ

POLL_EVERY = 0.002
RETRY_EVERY = 0.2
BACKLOG = 1 << 20
# The most that was slept too long and is made up for, in seconds.
OVERSLEPT = 0.25


class Host:
    """Waits for sockets and for time."""

    def __init__(self, speed: float):
        self.speed = speed
        self._selector = selectors.DefaultSelector()
        self._polled = 0.0
        self._overslept = 0

    def watch(self, file, ready: Callable[[], None]) -> None:
        """Calls `ready` whenever `file` can be read."""
        self._selector.register(file, selectors.EVENT_READ, ready)

    def forget(self, file) -> None:
        """No longer watches `file`."""
        try:
            self._selector.unregister(file)
        except KeyError:
            pass

    def poll(self) -> None:
        """Serves what is ready; cheap if it was called just before."""
        if time.monotonic() - self._polled >= POLL_EVERY:
            self._serve(0)

    def idle(self, cycles: int | None) -> int:
        """Waits until something is ready or `cycles` (None: anything) have passed; says how many did."""
        if self.speed == 0 and cycles is not None:
            self._serve(0)
            return cycles
        if cycles is not None and cycles <= self._overslept:
            self._overslept -= cycles
            self.poll()
            return cycles
        left = None if cycles is None else cycles - self._overslept
        wait = 0.05 if left is None else min(left / HZ / (self.speed or 1), 0.05)
        started = time.monotonic()
        self._serve(wait)
        passed = self._overslept + int((time.monotonic() - started) * HZ * (self.speed or 1))
        if cycles is None:
            self._overslept = 0
            return passed
        self._overslept = min(max(passed - cycles, 0), int(OVERSLEPT * HZ * (self.speed or 1)))
        return max(min(passed, cycles), 1)

    def _serve(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            key.data()
        self._polled = time.monotonic()


def address_of(name: str, where: str) -> tuple[str, int]:
    """Host and port of `tcp:HOST:PORT` or `listen:HOST:PORT`."""
    kind, _, address = where.partition(":")
    host, _, port = address.rpartition(":")
    if kind not in ("tcp", "listen") or not host or not port.isdecimal():
        raise ValueError(f"{name}: {where!r} is neither tcp:HOST:PORT nor listen:HOST:PORT")
    return host, int(port)


class Line:
    """A serial line as a TCP connection: `tcp:HOST:PORT` connects out and comes back when it breaks, `listen:HOST:PORT`
    takes one connection after another and prints where. Without a connection what the chip sends is lost, as on a line
    without a cable.
    """

    def __init__(self, host: Host, name: str, where: str, deliver: Callable[[bytes], None], room: Callable[[], int]):
        address = address_of(name, where)
        self.host, self._name, self._deliver, self._room = host, name, deliver, room
        self.plugged = True
        self.dropped = 0
        self._socket: socket.socket | None = None
        self._unsent = bytearray()
        self._watched = False
        self._retry = 0.0
        self._target: tuple[str, int] | None = None
        if where.startswith("tcp:"):
            self._target = address
            self._connect()
        else:
            self._listener = socket.create_server(address)
            print(f"{name} {self._listener.getsockname()[0]}:{self._listener.getsockname()[1]}", flush=True)
            host.watch(self._listener, self._accept)

    @property
    def connected(self) -> bool:
        """Whether somebody is at the other end."""
        return self._socket is not None

    def _connect(self) -> None:
        self._retry = time.monotonic() + RETRY_EVERY
        try:
            self._take(socket.create_connection(self._target, timeout=1))
        except OSError:
            pass

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        if self._socket is not None:
            self._close()
        self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._unsent.clear()
        self.serve()

    def _close(self) -> None:
        if self._socket is not None:
            self._watch(False)
            self._socket.close()
            self._socket = None

    def plug(self, plugged: bool) -> None:
        """Pulls the cable out of the chip, or puts it back; the connection stays."""
        self.plugged = plugged

    def send(self, data: bytes) -> None:
        """What the chip sends; beyond a backlog of 1 MiB it is dropped and counted."""
        if self._socket is None or not self.plugged or len(self._unsent) > BACKLOG:
            self.dropped += len(data)
            return
        self._unsent += data
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent and self._socket is not None:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._close()

    def serve(self) -> None:
        """To be called now and then: reconnects, sends what waited, and reads as far as the chip keeps up."""
        if self._socket is None:
            if self._target is not None and time.monotonic() >= self._retry:
                self._connect()
            return
        self._flush()
        if self._socket is not None:
            self._watch(self._room() > 0)

    def _watch(self, wanted: bool) -> None:
        if wanted and not self._watched:
            self.host.watch(self._socket, self._read)
        elif self._watched and not wanted:
            self.host.forget(self._socket)
        self._watched = wanted

    def _read(self) -> None:
        room = self._room()
        if room <= 0:
            self._watch(False)
            return
        try:
            data = self._socket.recv(room)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
        elif self.plugged:
            self._deliver(data)


class Air:
    """Radio frames as UDP datagrams on loopback: a magic, the channel (frequency in MHz above 2,400), the PSDU with FCS."""

    MAGIC = b"15.4"

    def __init__(self, host: Host, port: int, deliver: Callable[[int, bytes], None]):
        self.peers: list[int] = []
        self._deliver = deliver
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        print(f"radio {self.port}", flush=True)
        host.watch(self._socket, self._read)

    def send(self, channel: int, psdu: bytes) -> None:
        """A frame for every peer."""
        for peer in self.peers:
            try:
                self._socket.sendto(self.MAGIC + bytes([channel]) + psdu, ("127.0.0.1", peer))
            except OSError as error:
                print(f"[model] air to {peer}: {error}", file=sys.stderr)

    def _read(self) -> None:
        while True:
            try:
                data = self._socket.recv(256)
            except BlockingIOError:
                return
            except OSError:
                continue  # A peer that is gone.
            if data[:4] == self.MAGIC and len(data) > 5:
                self._deliver(data[4], data[5:])
