"""What is between the carriers: datagrams that get lost, come twice and out of order, or a pair of radios on
serial lines. Everything is kept."""

import os
import pty
import random
import select
import socket
import threading
import time
import tty

from pymavlink.dialects.v20 import common as m


class Air(threading.Thread):
    """Forwards each member's datagrams to all others. A member sends to, and receives from, the port that is
    its own here."""

    def __init__(self, loss=0.0, doubled=0.0, late=0.0, seed=1):
        super().__init__(daemon=True)
        self.loss, self.doubled, self.late = loss, doubled, late
        self.random = random.Random(seed)
        self.members, self.kept, self.running = [], [], True

    def carrier(self):
        """One more member's carrier."""
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("127.0.0.1", 0))
        here.setblocking(False)
        port = free_port()
        self.members.append((here, port))
        return f"udp:127.0.0.1:{port}+127.0.0.1:{here.getsockname()[1]}"

    def run(self):
        waiting = []
        while self.running:
            ready, _, _ = select.select([here for here, _ in self.members], [], [], 0.005)
            for here in ready:
                waiting.extend(self.take(here))
            now = time.monotonic()
            for due in [one for one in waiting if one[0] <= now]:
                waiting.remove(due)
                due[1].sendto(due[2], ("127.0.0.1", due[3]))

    def take(self, here):
        while True:
            try:
                datagram = here.recv(65535)
            except BlockingIOError:
                return
            except ConnectionError:
                # Its receiver is not there yet.
                continue
            self.kept.append(datagram)
            for other, port in self.members:
                if other is here:
                    continue
                copies = 0 if self.random.random() < self.loss else 1 + (self.random.random() < self.doubled)
                for _ in range(copies):
                    delay = 0.05 * self.random.random() if self.random.random() < self.late else 0.0
                    yield (time.monotonic() + delay, other, datagram, port)

    def close(self):
        self.running = False
        if self.is_alive():
            self.join()
        for here, _ in self.members:
            here.close()


class Line(threading.Thread):
    """Two serial lines with a pair of radios between them, or a cable: what goes in at one comes out at the
    other, no faster than ``rate`` bytes a second."""

    STEP = 0.01
    CARRIER = "serial"

    def __init__(self, rate):
        super().__init__(daemon=True)
        self.rate = rate
        self.ends = [pty.openpty(), pty.openpty()]
        for _, device in self.ends:
            tty.setraw(device)
        self.names = [os.ttyname(device) for _, device in self.ends]
        self.kept, self.running, self.given = [], True, 0
        # The same, of each end.
        self.sent = [bytearray(), bytearray()]

    def carrier(self):
        """The next end's carrier."""
        self.given += 1
        return f"{self.CARRIER}:{self.names[self.given - 1]}:57600"

    def run(self):
        (first, _), (second, _) = self.ends
        ways = {first: (second, bytearray()), second: (first, bytearray())}
        while self.running:
            time.sleep(self.STEP)
            ready, _, _ = select.select(list(ways), [], [], 0)
            for end in ready:
                taken = os.read(end, 65536)
                self.kept.append(taken)
                self.sent[end == second] += taken
                ways[end][1].extend(taken)
            for to, waiting in ways.values():
                now = waiting[: int(self.rate * self.STEP)]
                del waiting[: len(now)]
                if now:
                    os.write(to, now)
                elif says := self.word():
                    os.write(to, says)

    def word(self):
        """What a radio says between frames of the other side."""
        return b""

    def close(self):
        self.running = False
        if self.is_alive():
            self.join()
        for end in self.ends:
            for descriptor in end:
                os.close(descriptor)


class MavlinkLine(Line):
    """The same with radios that take nothing but MAVLink, and say how they are doing."""

    CARRIER = "tunnel"

    def __init__(self, rate):
        super().__init__(rate)
        self.mav = m.MAVLink(None, srcSystem=51, srcComponent=68)
        self.due = 0.0

    def word(self):
        if time.monotonic() < self.due:
            return b""
        self.due = time.monotonic() + 0.25
        return self.mav.radio_status_encode(180, 170, 90, 40, 42, 0, 0).pack(self.mav)


def free_port():
    """A UDP port that nobody has at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
