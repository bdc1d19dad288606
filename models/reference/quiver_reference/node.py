"""An edge as a node: stores its state, keeps connections to KGC and leaders, and drives the edge. Protocol §15, §23."""

import asyncio
import json
import os
import time
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .edge import EVERYBODY, KGC, LEADER, Edge
from .identity import Deployment, Token
from .libp2p import GROUP, Connection, Seen

TICK, REDIAL, DIAL = 0.1, 0.3, 20


class Node:
    """One edge. Its state is a file of JSON in the clear: for reading and for tests, not for use."""

    def __init__(self, directory, deployment, group, token, kgcs, leaders):
        self.path = Path(directory) / "edge.json"
        Path(directory).mkdir(parents=True, exist_ok=True)
        state = json.loads(self.path.read_text()) if self.path.exists() else {}
        state.setdefault("transport", os.urandom(32).hex())
        self.identity = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(state["transport"]))
        deployment = Deployment.read(deployment)
        self.edge = Edge(deployment, group, Token.read(token, deployment), state)
        self.addresses = [(KGC, address) for address in kgcs] + [(LEADER, address) for address in leaders]
        self.connections, self.tasks, self.stored, self.seen = {}, [], None, Seen()
        # Why an address was not reached, when it was dialled last.
        self.unreached = {}

    def start(self):
        self.tasks = [asyncio.ensure_future(self.keep(*one)) for one in self.addresses]
        self.tasks.append(asyncio.ensure_future(self.tick()))

    async def stop(self):
        """At once, as a crash would."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for connection in self.connections.values():
            connection.close()

    async def keep(self, role, address):
        """Dials an address until this ends; the KGC only until there is a key."""
        topic = f"{GROUP}/{self.edge.group}" if role == LEADER else None
        while role == LEADER or self.edge.keypair is None:
            connection = Connection(partial(self.receive, address), topic, self.seen, self.edge.vouch)
            try:
                await asyncio.wait_for(connection.dial(address, self.identity), DIAL)
            except (OSError, TimeoutError, ValueError) as reason:
                self.unreached[address] = str(reason)
                connection.close()
                await asyncio.sleep(REDIAL)
                continue
            self.connections[address] = connection
            self.edge.connected(address, role, time.time())
            self.flush()
            try:
                await connection.run()
            finally:
                self.connections.pop(address, None)
                self.edge.disconnected(address)
            await asyncio.sleep(REDIAL)

    async def tick(self):
        while True:
            self.edge.tick(time.time())
            self.flush()
            await asyncio.sleep(TICK)

    def receive(self, address, message, by_gossip):
        self.edge.receive(time.time(), address, message, by_gossip)
        self.flush()

    def flush(self):
        """§15: what must survive is stored before anything that depends on it leaves."""
        text = json.dumps(self.edge.state)
        if text != self.stored:
            beside = self.path.with_suffix(".new")
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
            self.stored = text
        waiting, self.edge.outbox = self.edge.outbox, []
        for peer, message in waiting:
            if peer is EVERYBODY:
                # The same bytes by way of every leader: it is one message.
                data = os.urandom(8) + message
                for connection in self.connections.values():
                    connection.publish(data)
            elif peer in self.connections:
                self.connections[peer].send(message)
