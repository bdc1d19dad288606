"""The transport against peers that are not what they should be."""

import asyncio
import unittest

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quiver_reference import libp2p
from quiver_reference.libp2p import Closed, Connection, line
from quiver_reference.ristretto import Refused

from .programs import Bench


class Peers(unittest.IsolatedAsyncioTestCase):
    async def dial(self, says):
        """What comes of dialling a server that says this, whatever it hears, and closes."""
        async def serve(_, writer):
            writer.write(says)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = Connection(None)
        try:
            await asyncio.wait_for(connection.dial(f"/ip4/127.0.0.1/tcp/{port}", Ed25519PrivateKey.generate()), 10)
        finally:
            connection.close()
            server.close()

    async def test_servers_of_something_else_are_refused(self):
        greeting = line("/multistream/1.0.0") + line("/noise")
        for says, error in (
            (b"", Closed), (b"SSH-2.0-OpenSSH\r\n" + bytes(90), Refused), (b"\xff" * 64, Refused),
            (line("/multistream/1.0.0") + line("na"), Refused), (greeting, Closed),
            (greeting + bytes([0, 200]) + b"\x09" * 200, Refused), (greeting + bytes([0, 1, 9]), ValueError),
            (greeting + bytes([0, 80]) + bytes(80), ValueError),
        ):
            with self.assertRaises(error, msg=says):
                await self.dial(says)

    async def test_a_peer_of_another_name_is_refused(self):
        bench = Bench()
        self.addAsyncCleanup(bench.close)
        await bench.found()
        address = await bench.kgc()
        for named, fits in ((address, True), (address[:-1] + ("a" if address[-1] != "a" else "b"), False)):
            connection = Connection(None)
            try:
                await connection.dial(named, Ed25519PrivateKey.generate())
                self.assertTrue(fits)
                self.assertEqual(connection.peer, address.split("/")[-1])
            except Refused:
                self.assertFalse(fits)
            connection.close()

    def test_a_groups_message_is_taken_once(self):
        seen = libp2p.Seen()
        self.assertEqual([seen.is_new(one) for one in (b"a", b"b", b"a")], [True, True, False])


if __name__ == "__main__":
    unittest.main()
