"""What is between the carriers' sockets: datagrams get lost, come twice and out of order; everything is kept."""

import random
import select
import socket
import threading
import time


class Air(threading.Thread):
    """Forwards each member's datagrams to all others. A member sends to, and receives from, the port that is its own here."""

    def __init__(self, loss=0.0, doubled=0.0, late=0.0, seed=1):
        super().__init__(daemon=True)
        self.loss, self.doubled, self.late = loss, doubled, late
        self.random = random.Random(seed)
        self.members, self.kept, self.running = [], [], True
        self.silent = set()

    def member(self):
        """A member's port, and the port here that it sends to."""
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("127.0.0.1", 0))
        here.setblocking(False)
        port = free_port()
        self.members.append((here, port))
        return port, here.getsockname()[1]

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
                if other is here or port in self.silent:
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


def free_port():
    """A UDP port that nobody has at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
