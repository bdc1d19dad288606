"""The reference as a member of groups that the real programs make: each test starts a KGC, leaders and a Rust edge."""

import copy
import socket
import time
import unittest
from unittest import mock

from quiver_reference import datagram
from quiver_reference.node import Node
from quiver_reference.ristretto import Refused
from quiver_reference.second_factor import SETS

from .programs import Bench, eventually, free_address


class Programs(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.bench, self.kgc = Bench(), None
        self.addAsyncCleanup(self.bench.close)

    async def found(self, kem="none"):
        await self.bench.found(kem)
        self.kgc = await self.bench.kgc()

    async def form(self, strategy, *words):
        """A leader of the group, a Rust edge, and an edge of the reference."""
        if not self.kgc:
            await self.found()
        await self.bench.token("leader-1", "--leads", "alpha")
        for name in ("rust-1", "reference-1"):
            await self.bench.token(name, "--group", "alpha")
        self.listen = free_address()
        self.words = "--strategy", strategy, *words
        self.leader = self.bench.leader(self.kgc, "leader-1", self.listen, *self.words)
        await self.leader.address()
        self.rust = self.bench.edge(self.kgc, "rust-1", self.listen)
        self.node = self.bench.reference(self.kgc, "reference-1", self.listen)
        await self.in_step(2)

    async def in_step(self, members, after=(0, 0), leader="leader-1", nodes=None, edges=("rust-1",)):
        """Waits until all members hold the key of one epoch after this one; that epoch."""
        nodes = [self.node] if nodes is None else nodes

        async def look():
            led = await self.bench.status("leader", leader)
            if not led or led["acknowledged"] != members or (led["term"], led["counter"]) <= after:
                return None
            digests = [(await self.bench.status("edge", edge) or {}).get("epoch_digest") for edge in edges]
            digests += [node.edge.member and node.edge.member.header.digest[:8].hex() for node in nodes]
            ready = all(node.edge.can_send() for node in nodes)
            return (led["term"], led["counter"]) if ready and set(digests) == {led["epoch_digest"]} else None

        try:
            return await eventually(f"{members} members in one epoch after {after}", look)
        except AssertionError as failure:
            failure.add_note("\n".join(str(one) for node in nodes for one in node.edge.events[-30:]))
            raise

    async def event(self, node, what, **more):
        """The first event that has all this, which is then taken from the list."""
        def look():
            return next((one for one in node.edge.events if one["event"] == what and more.items() <= one.items()), None)

        found = await eventually(f"{what} {more}", look)
        node.edge.events.remove(found)
        return found

    def say(self, node, text, signed=True):
        node.edge.say(time.time(), "chat", text.encode(), signed)
        node.flush()

    async def talk(self, words, leader="leader-1"):
        """Rust edge, leader and reference send messages to each other, signed and not."""
        self.say(self.node, f"{words} from the reference")
        line = await self.rust.line(f"{words} from the reference")
        self.assertIn('"from":"reference-1"', line)
        self.assertIn('"signed":true', line)
        self.say(self.node, f"{words} from somebody", signed=False)
        self.assertIn('"signed":false', await self.rust.line(f"{words} from somebody"))
        await self.bench.run("edge", "send", "-d", "rust-1-data", f"{words} from rust")
        await self.event(self.node, "message", text=f"{words} from rust".encode(), signer="rust-1", channel="chat")
        await self.bench.run("edge", "send", "-d", "rust-1-data", "--unsigned", f"{words} from a member")
        await self.event(self.node, "message", text=f"{words} from a member".encode(), signer=None)
        await self.bench.run("leader", "send", "-d", f"{leader}-data", f"{words} from the leader")
        await self.event(self.node, "message", text=f"{words} from the leader".encode(), signer=leader)

    async def restart(self, name, *leaders):
        """Ends the reference's edge as a crash would, and starts it from its stored state."""
        key, boot_no = self.node.edge.keypair, self.node.edge.state["boot_no"]
        await self.node.stop()
        self.node = self.bench.reference(self.kgc, name, *leaders)
        self.assertEqual(self.node.edge.keypair, key)
        self.assertEqual(self.node.edge.state["boot_no"], boot_no + 1)
        self.assertFalse(self.node.edge.can_send(), "K_g is not stored")

    def assert_second_factor(self, kem, g, node=None, leaders=1):
        """§24: the header names set and g, and κ is of this g, with so many leaders; without one there is neither."""
        edge = (node or self.node).edge
        header = edge.member.header
        self.assertEqual(edge.deployment.kem, SETS[kem])
        self.assertEqual((header.kem, header.kem_terms), (SETS[kem], g) if SETS[kem] else (0, 0))
        self.assertEqual(len(edge.kappas), leaders if SETS[kem] else 0)
        if SETS[kem]:
            kappa = edge.kappas[header.leader.handle()]
            self.assertEqual((kappa.set, kappa.g), (SETS[kem], g))

    async def renew(self, kem, epoch):
        """§24.5: an operator has κ made anew: the member is absent, names what it has, is refused, and brings ek."""
        if kem == "none":
            return epoch
        former = next(iter(self.node.edge.kappas.values()))
        await self.bench.run("leader", "kem", "renew", "-d", "leader-1-data", "reference-1")
        await self.event(self.node, "out", why="rejoin")
        await self.event(self.node, "refusal", reason="second factor lost")
        self.assertEqual((await self.event(self.node, "joined"))["second_factor"], "exchange")
        epoch = await self.in_step(2, after=epoch)
        self.assertNotEqual(former.at(self.node.edge.member.header.leader.handle(), former.g + 1),
                            next(iter(self.node.edge.kappas.values())))
        await self.talk("after a renewal")
        return epoch

    async def live(self, strategy, kem="none"):
        await self.found(kem)
        await self.form(strategy)
        self.assertEqual(self.node.edge.member.header.height > 0, strategy == "tree")
        self.assertEqual((await self.event(self.node, "joined"))["second_factor"],
                         None if kem == "none" else "exchange")
        self.assert_second_factor(kem, 1)
        await self.talk("at first")

        # Re-key on command: under tree with a short header (§7.6).
        epoch = await self.in_step(2)
        self.node.edge.events = [one for one in self.node.edge.events if one["event"] != "short header"]
        await self.bench.run("leader", "rekey", "-d", "leader-1-data")
        epoch = await self.in_step(2, after=epoch)
        if strategy == "tree":
            await self.event(self.node, "short header", counter=epoch[1])
        self.assertEqual([one for one in self.node.edge.events if one["event"] == "short header"], [])
        await self.talk("after a re-key")

        # A member joins later, and another leaves: both of the reference.
        await self.bench.token("reference-2", "--group", "alpha")
        second = self.bench.reference(self.kgc, "reference-2", self.listen)
        epoch = await self.in_step(3, after=epoch, nodes=[self.node, second])
        self.say(second, "I am new")
        await self.event(self.node, "message", text=b"I am new", signer="reference-2")
        second.edge.leave()
        second.flush()
        await self.event(second, "out", why="removed")
        self.assertNotIn("membership", second.edge.state)
        self.assertEqual(second.edge.state["pairs"], [])
        epoch = await self.in_step(2, after=epoch)

        # A Rust edge is evicted.
        await self.bench.token("rust-2", "--group", "alpha")
        self.bench.edge(self.kgc, "rust-2", self.listen)
        epoch = await self.in_step(3, after=epoch, edges=("rust-1", "rust-2"))
        await self.bench.run("leader", "evict", "-d", "leader-1-data", "rust-2")
        epoch = await self.in_step(2, after=epoch)
        await self.talk("after an eviction")

        # The reference restarts, with what it stored.
        await self.restart("reference-1", self.listen)
        epoch = await self.in_step(2, after=epoch)
        await self.talk("after a restart of the edge")

        # The leader is killed and starts again: a new term, opened with the spare points.
        self.leader.kill()
        self.leader = self.bench.leader(self.kgc, "leader-1", self.listen, *self.words)
        opened = await self.in_step(2, after=epoch)
        self.assertGreater(opened[0], epoch[0])
        self.assert_second_factor(kem, 2)
        await self.event(self.node, "spare acknowledged")
        await self.talk("after a restart of the leader")
        await self.bench.run("leader", "rekey", "-d", "leader-1-data")
        epoch = await self.in_step(2, after=opened)

        # Both at once: the term that was opened meanwhile is found by a question without an answer's tag.
        await self.node.stop()
        self.leader.kill()
        self.leader = self.bench.leader(self.kgc, "leader-1", self.listen, *self.words)
        await self.leader.address()
        self.node = self.bench.reference(self.kgc, "reference-1", self.listen)
        epoch = await self.in_step(2, after=epoch)
        self.assert_second_factor(kem, 3)
        await self.talk("after restarts of both")
        self.assertEqual([one for one in self.node.edge.events if one["event"] in ("joined", "out")], [])
        epoch = await self.renew(kem, epoch)

        # At last it is evicted or revoked itself, and asks nobody for admission any more.
        if strategy == "flat":
            await self.bench.run("leader", "evict", "-d", "leader-1-data", "reference-1")
            await self.event(self.node, "out")
        else:
            await self.bench.run("kgc", "drone", "revoke", "reference-1")
            await self.event(self.node, "revocation list")
            await self.event(self.node, "out")
            self.assertIn(self.node.edge.keypair.public.identity.serial, self.node.edge.revocations.serials)
        await self.in_step(1, after=epoch, nodes=[])
        self.assertFalse(self.node.edge.can_send())
        self.assertEqual([one for one in self.node.edge.events if one["event"] == "refused"], [])

    async def test_flat_from_enrolment_to_eviction(self):
        await self.live("flat")

    async def test_tree_from_enrolment_to_eviction(self):
        await self.live("tree")

    async def test_flat_with_a_second_factor_from_enrolment_to_eviction(self):
        await self.live("flat", "ml-kem-768")

    async def test_tree_with_a_second_factor_from_enrolment_to_eviction(self):
        await self.live("tree", "ml-kem-1024")

    async def test_who_left_and_joins_again_names_the_secret_that_it_has(self):
        """§24.5."""
        await self.found("ml-kem-768")
        await self.form("tree")
        epoch, kappas = await self.in_step(2), dict(self.node.edge.kappas)
        await self.event(self.node, "joined")
        self.node.edge.leave()
        self.node.flush()
        await self.event(self.node, "out", why="removed")
        epoch = await self.in_step(1, after=epoch, nodes=[])
        self.node.edge.wants_in = True
        self.assertEqual((await self.event(self.node, "joined"))["second_factor"], "held")
        await self.in_step(2, after=epoch)
        self.assertEqual(self.node.edge.kappas, kappas)
        await self.talk("once more")

    async def test_deployments_that_differ_in_the_second_factor_do_not_meet(self):
        """§24.6: either end says so, and asks for nothing."""
        await self.found("ml-kem-768")
        await self.form("flat")
        await self.bench.token("reference-2", "--group", "alpha")
        file = self.bench.directory / "kgc-data/deployment.toml"
        own = file.read_text()
        for kem, altered in ((0, own.replace('kem = "ml-kem-768"\n', "")), (2, own.replace("ml-kem-768", "ml-kem-1024"))):
            self.assertNotEqual(altered, own)
            (self.bench.directory / "other.toml").write_text(altered)
            other = self.bench.reference(self.kgc, "reference-2", self.listen, deployment="other.toml")
            await self.event(other, "another second factor", own=kem, leader=1)
            self.assertIsNone(other.edge.member)
            self.assertEqual(other.edge.kappas, {})
            await other.stop()

    async def test_keys_that_run_out_are_renewed_and_nothing_is_sent_without_one(self):
        await self.form("flat", "--validity", "15s")
        epoch = await self.in_step(2)
        epoch = await self.in_step(2, after=epoch)
        await self.talk("after the first key's time")
        self.leader.kill()
        await eventually("the key's time is over", lambda: not self.node.edge.can_send())
        self.assertGreaterEqual(time.time(), self.node.edge.member.header.valid_until)
        self.assertIsNone(self.node.edge.member.key)
        with self.assertRaises(Refused):
            self.say(self.node, "too late")
        self.leader = self.bench.leader(self.kgc, "leader-1", self.listen, *self.words)
        await self.in_step(2, after=epoch)
        await self.talk("under a new term")

    async def test_the_reference_runs_as_a_program(self):
        await self.form("flat")
        await self.bench.token("reference-2", "--group", "alpha")
        program = self.bench.program("reference-2", self.kgc, self.listen)
        await program.line('"event": "joined"')
        await self.in_step(3)
        program.process.stdin.write("hello from a program\n")
        program.process.stdin.flush()
        await self.rust.line("hello from a program")
        await self.bench.run("leader", "send", "-d", "leader-1-data", "hello to a program")
        await program.line("hello to a program")

    async def fail_over(self, strategy, kem="none"):
        await self.found(kem)
        for ordinal in (0, 1):
            await self.bench.token(f"leader-{ordinal}", "--leads", "alpha", "--ordinal", str(ordinal))
        for name in ("rust-1", "reference-1"):
            await self.bench.token(name, "--group", "alpha")
        at = [free_address(), free_address()]

        def lead(ordinal):
            words = "--peer", at[1 - ordinal], "--silence", "3s", "--strategy", strategy
            return self.bench.leader(self.kgc, f"leader-{ordinal}", at[ordinal], *words)

        async def stands(ordinal, **how):
            status = await self.bench.status("leader", f"leader-{ordinal}")
            return status if status and how.items() <= status.items() else None

        first = lead(0)
        await eventually("leader 0 leads", lambda: stands(0, stance="leading"))
        lead(1)
        self.rust = self.bench.edge(self.kgc, "rust-1", *at)
        self.node = self.bench.reference(self.kgc, "reference-1", *at)
        before = await self.in_step(2, leader="leader-0")
        await self.talk("before", leader="leader-0")
        # What a deputy has on disk is what the leader's epoch has.
        await eventually("leader 1 stands by", lambda: stands(1, stands_by_for="leader-0"))
        await eventually("the replica", lambda: stands(1, stance="standing by", members=2))
        if kem != "none":
            # §24.7: with the deputy, before it leads.
            await self.event(self.node, "second factor", g=1)
        await self.event(self.node, "joined")

        first.kill()
        after = await self.in_step(2, after=before, leader="leader-1")
        self.assertEqual(after[0] & 0xFFFF, 1, "the term is the deputy's")
        self.assert_second_factor(kem, 1, leaders=2)
        self.assertEqual([one for one in self.node.edge.events if one["event"] in ("joined", "out")], [],
                         "it follows by its spare point, and does not join again")
        await self.talk("under the deputy", leader="leader-1")
        await self.bench.run("leader", "rekey", "-d", "leader-1-data")
        after = await self.in_step(2, after=after, leader="leader-1")

        # The first one comes back, and stands by; a restarted edge finds who leads.
        lead(0)
        await eventually("leader 0 stands by", lambda: stands(0, stands_by_for="leader-1"))
        await self.restart("reference-1", *at)
        await self.in_step(2, after=after, leader="leader-1")
        await self.talk("at last", leader="leader-1")
        self.assertEqual([one for one in self.node.edge.events if one["event"] == "refused"], [])

    async def test_flat_follows_a_deputy_that_takes_over(self):
        await self.fail_over("flat")

    async def test_tree_follows_a_deputy_that_takes_over(self):
        await self.fail_over("tree")

    async def test_flat_with_a_second_factor_follows_a_deputy_that_takes_over(self):
        await self.fail_over("flat", "ml-kem-768")

    async def test_tree_with_a_second_factor_follows_a_deputy_that_takes_over(self):
        await self.fail_over("tree", "ml-kem-768")

    async def test_newcomers_and_an_opening_follow_by_one_broadcast_over_a_shared_medium(self):
        """§6.1, §7.5: wraps for all, in place of welcomes, entries and paths."""
        self.bench.batching = "3s"
        await self.found("ml-kem-768")
        await self.bench.token("leader-1", "--leads", "alpha")
        listen, names = free_address(), [f"reference-{number}" for number in range(9)]
        for name in names:
            await self.bench.token(name, "--group", "alpha")
        nodes = [self.bench.reference(self.kgc, name, listen) for name in names]
        for node in nodes:
            await self.event(node, "enrolled")
        words = "--strategy", "tree", "--shared-medium"
        leader = self.bench.leader(self.kgc, "leader-1", listen, *words)
        joined = await self.in_step(9, nodes=nodes, edges=())
        by = [(await self.event(node, "joined"))["by"] for node in nodes]
        self.assertIn("wraps", by)

        leader.kill()
        leader = self.bench.leader(self.kgc, "leader-1", listen, *words)
        opened = await self.in_step(9, after=joined, nodes=nodes, edges=())
        self.assertGreater(opened[0], joined[0])
        by = [(await self.event(node, "epoch", term=opened[0], counter=1))["by"] for node in nodes]
        self.assertTrue({"delta", "part"} & set(by), by)
        await self.bench.run("leader", "evict", "-d", "leader-1-data", names[8])
        await self.event(nodes[8], "out")
        await self.in_step(8, after=opened, nodes=nodes[:8], edges=())

    async def test_many_that_leave_at_once_cost_each_member_its_part_of_the_wraps(self):
        """§7.5: over links a member is sent the part with the nodes on its path if all wraps are many."""
        await self.found()
        await self.bench.token("leader-1", "--leads", "alpha")
        self.bench.batching = "3s"
        listen, names = free_address(), [f"reference-{number:02}" for number in range(16)]
        for name in names:
            await self.bench.token(name, "--group", "alpha")
        await self.bench.leader(self.kgc, "leader-1", listen, "--strategy", "tree").address()
        nodes = [self.bench.reference(self.kgc, name, listen) for name in names]
        joined = await self.in_step(16, nodes=nodes, edges=())
        leaving = [node for node in nodes if node.edge.member.slot % 5 in (0, 3)]
        staying = [node for node in nodes if node not in leaving]
        for node in nodes:
            node.edge.events.clear()
        for node in leaving:
            node.edge.leave()
            node.flush()
        for node in leaving:
            await self.event(node, "out", why="removed")
        await self.in_step(len(staying), after=joined, nodes=staying, edges=())
        by = [(await self.event(node, "epoch"))["by"] for node in staying]
        self.assertIn("part", by)

    async def test_what_is_altered_on_the_way_changes_nothing(self):
        """Every message that came is given to a copy of the edge as it was then, with one bit changed."""
        came, receive = [], Node.receive

        def record(node, address, message, by_gossip):
            came.append((copy.deepcopy(node.edge), address, message, by_gossip))
            receive(node, address, message, by_gossip)

        recording = mock.patch.object(Node, "receive", record)
        recording.start()
        self.addCleanup(recording.stop)
        await self.form("tree")
        node = self.node
        came.clear()
        epoch = await self.in_step(2)
        await self.bench.run("leader", "rekey", "-d", "leader-1-data")
        await self.in_step(2, after=epoch)
        await self.bench.run("leader", "send", "-d", "leader-1-data", "go north")
        await self.event(node, "message", text=b"go north")
        taken = {"epoch": 0, "message": 0}
        for edge, address, message, by_gossip in came:
            edge.events = []
            whole = copy.deepcopy(edge)
            whole.receive(time.time(), address, message, by_gossip)
            for one in whole.events:
                taken[one["event"]] = taken.get(one["event"], 0) + 1
            # All places of a long message would take minutes: a prime step reaches every field.
            for place in range(8, 8 * len(message), 37):
                altered, other = bytearray(message), copy.deepcopy(edge)
                altered[place // 8] ^= 1 << place % 8
                other.receive(time.time(), address, bytes(altered), by_gossip)
                self.assertEqual([one for one in other.events if one["event"] != "refused"], [], place)
                self.assertEqual(other.member.header.digest, edge.member.header.digest)
        self.assertGreater(taken["epoch"], 0, taken)
        self.assertGreater(taken["message"], 0, taken)

    async def test_datagrams_pass_between_the_reference_and_a_rust_edge(self):
        await self.exchange_datagrams("flat")

    async def test_datagrams_pass_under_a_tree_with_a_second_factor(self):
        await self.exchange_datagrams("tree", "ml-kem-768")

    async def exchange_datagrams(self, strategy, kem="none"):
        """MAVLink from a program at the Rust edge to the reference, which answers in kind."""
        await self.found(kem)
        program, radio = self.socket(), self.socket()
        endpoint, carrier = (int(free_address().split("/")[-1]) for _ in range(2))
        await self.bench.token("leader-1", "--leads", "alpha")
        for name in ("rust-1", "reference-1"):
            await self.bench.token(name, "--group", "alpha")
        self.listen = free_address()
        ids = "--system-id", "rust-1=1", "--system-id", "reference-1=2"
        await self.bench.leader(self.kgc, "leader-1", self.listen, "--strategy", strategy, *ids).address()
        (self.bench.directory / "mavlink.conf").write_text(
            f"[UdpEndpoint program]\nMode = Server\nAddress = 127.0.0.1\nPort = {endpoint}\n"
            f"[QuiverEndpoint group]\nCarrier = udp:127.0.0.1:{carrier}+127.0.0.1:{radio.getsockname()[1]}\n"
            "Manifest = true\n")
        self.rust = self.bench.edge(self.kgc, "rust-1", self.listen, more=("--mavlink-config", "mavlink.conf"))
        self.node = self.bench.reference(self.kgc, "reference-1", self.listen)
        await self.in_step(2)
        self.assertEqual(self.node.edge.member.header.height > 0, strategy == "tree")
        self.assert_second_factor(kem, 1)
        channel = self.node.edge.member.channel
        receiver, came, opened = datagram.Receiver(channel), [], []

        def exchange():
            """The program speaks as system 1; the reference opens what comes by the carrier, and asks who it is."""
            for frame in (heartbeat(1, len(came)), command(1, len(came))):
                program.sendto(frame, ("127.0.0.1", endpoint))
            if not any(one["signer"] for one in opened):
                radio.sendto(sender.announcement(wanted=[(1, 0)]), ("127.0.0.1", carrier))
            for one in arrivals(radio):
                try:
                    opened.append(receiver.open(one, set(), time.time()))
                    came.append(one)
                except Refused as reason:
                    self.assertIn(str(reason), unknown)
            kinds = {one["kind"] for one in opened}
            return kinds & payloads and kinds & signed and datagram.MANIFEST in kinds

        self.assertEqual(self.node.edge.member.slot, 1 - (await self.bench.status("edge", "rust-1"))["slot"])
        unknown = "a sender that has not announced itself", "signed by nobody that is known"
        payloads = {datagram.SINGLE, datagram.BATCH}
        signed = {datagram.SIGNED_SINGLE, datagram.SIGNED_BATCH}
        sender = datagram.Sender(channel, self.node.edge.keypair)
        await eventually("payloads, signed ones, and a manifest", exchange)
        self.assertEqual({one["signer"].name for one in opened if one["kind"] in datagram.SIGNED}, {"rust-1"})
        self.assertEqual([one for one in opened if one.get("contradicts")], [])

        # What came is refused when it comes again, and whatever bit of it is changed.
        for one in came:
            if one[0] >> 3 & 7 != datagram.ANNOUNCEMENT:
                with self.assertRaises(Refused):
                    receiver.open(one, set(), time.time())
        for place in range(8 * len(came[-1])):
            altered = bytearray(came[-1])
            altered[place // 8] ^= 1 << place % 8
            with self.assertRaises(Refused):
                copy.deepcopy(receiver).open(bytes(altered), set(), time.time())

        # A frame's system is not in a datagram, but its checksum is: the heartbeat that came, as system 2's.
        payload = next(one for found in opened for one in found["payloads"] if one[-4:-2] == bytes([4, 3]))
        own = payload[:-2] + heartbeat(2, payload[1])[-2:]
        heard = []

        def answer():
            for one in (sender.announcement(), sender.payloads([own])):
                radio.sendto(one, ("127.0.0.1", carrier))
            program.sendto(heartbeat(1, 0), ("127.0.0.1", endpoint))
            heard.extend(arrivals(program))
            return heartbeat(2, payload[1]) in heard

        await eventually("the reference's heartbeat at the program of the Rust edge", answer)
        self.assertNotIn(heartbeat(1, payload[1]), heard)

    def socket(self):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("127.0.0.1", 0))
        one.setblocking(False)
        self.addCleanup(one.close)
        return one


def arrivals(receiving):
    """What waits at a socket."""
    while True:
        try:
            yield receiving.recv(2048)
        except BlockingIOError:
            return


def frame(message, extra, system, sequence, body):
    """A frame of MAVLink 2, with its checksum: X.25, the message's own byte behind."""
    counted = bytes([len(body), 0, 0, sequence & 255, system, 1, message, 0, 0]) + body
    checksum = 0xFFFF
    for byte in counted + bytes([extra]):
        low = byte ^ checksum & 0xFF
        low = (low ^ low << 4) & 0xFF
        checksum = checksum >> 8 ^ low << 8 ^ low << 3 ^ low >> 4
    return b"\xfd" + counted + (checksum & 0xFFFF).to_bytes(2, "little")


def heartbeat(system, sequence):
    return frame(0, 50, system, sequence, bytes([0, 0, 0, 0, 2, 3, 81, 4, 3]))


def command(system, sequence):
    """COMMAND_LONG to everybody: MAV_CMD_REQUEST_MESSAGE."""
    return frame(76, 152, system, sequence, bytes(28) + (512).to_bytes(2, "little") + bytes([0, 0, 1]))


if __name__ == "__main__":
    unittest.main()
