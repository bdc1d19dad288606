"""The package, with real services on loopback: `QUIVER_PROGRAMS=target/debug python -m unittest discover edge/python/tests`."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time
import unittest

import quiver
from services import PASSPHRASE, Deployment

NOBODY = "/ip4/127.0.0.1/tcp/9"
TALK = pathlib.Path(__file__).resolve().parent.parent / "examples/talk.py"


class Refusals(unittest.TestCase):
    """What wrong arguments, files and calls are answered with. No service runs."""

    @classmethod
    def setUpClass(cls):
        cls.ours, cls.other = Deployment(), Deployment()
        cls.token, cls.foreign = cls.ours.token("edge-1"), cls.other.token("edge-1")

    @classmethod
    def tearDownClass(cls):
        cls.ours.close()
        cls.other.close()

    def open(self, **changes):
        given = {
            "data_dir": self.ours.directory / self.id(),
            "passphrase": b"secret",
            "leaders": [NOBODY],
            "deployment": self.ours.file,
            "token_file": self.token,
            "kgcs": [NOBODY],
        }
        return quiver.Edge(**{**given, **changes})

    def refuses(self, kind, words, **changes):
        with self.assertRaises(kind) as caught:
            self.open(**changes)
        self.assertIn(words, str(caught.exception))
        self.assertIsInstance(caught.exception, quiver.Error)

    def test_wrong_options_are_named(self):
        self.refuses(quiver.UsageError, "`leaders` is empty", leaders=[])
        self.refuses(quiver.UsageError, "10.0.0.1:0", leaders=["10.0.0.1:0"])
        self.refuses(quiver.UsageError, "`group`: no spaces", group="no spaces")
        self.refuses(quiver.UsageError, "no deployment", deployment=None)
        self.refuses(quiver.UsageError, "no address of a KGC", kgcs=[])
        self.refuses(quiver.UsageError, "`passphrase` and `key_file`", passphrase=None)
        with self.assertRaises(TypeError):
            quiver.Edge(self.ours.directory, b"secret")

    def test_wrong_tokens_are_told_apart(self):
        self.refuses(quiver.UsageError, "another deployment", token_file=self.foreign)
        self.refuses(quiver.UsageError, "--token", token_file=None)
        self.refuses(quiver.Error, "missing.token", token_file="missing.token")
        text = pathlib.Path(self.token).read_bytes()
        self.refuses(quiver.UsageError, "the token given: it was cut", token_file=None, token=text[:-9])
        self.refuses(quiver.UsageError, "this is not a token", token_file=None, token=b"hello")
        self.refuses(quiver.UsageError, "both `token_file` and `token`", token=text)
        os.chmod(self.token, 0o644)
        self.refuses(quiver.LockedError, "chmod 600")
        os.chmod(self.token, 0o600)

    def test_wrong_passphrase_and_a_second_drone_are_refused(self):
        self.refuses(quiver.LockedError, "empty", passphrase=b"")
        with self.open():
            self.refuses(quiver.BusyError, "in use")
        self.refuses(quiver.LockedError, "wrong passphrase", passphrase=b"wrong")

    def test_wrong_calls_are_refused(self):
        with self.open() as edge:
            self.assertEqual(edge.status().standing, "enrolling")
            self.assertIsNone(edge.next_event(timeout=0.05))
            with self.assertRaises(TimeoutError):
                edge.join(timeout=0.3)
            with self.assertRaises(quiver.NotJoinedError):
                edge.send("chat", b"too early")
            with self.assertRaises(quiver.UsageError) as caught:
                edge.send("chat", bytes(quiver.MAX_MESSAGE + 1))
            self.assertIn("65537 bytes, more than 65536", str(caught.exception))
            for timeout in (float("nan"), 1e300):
                with self.assertRaises((ValueError, OverflowError)):
                    edge.join(timeout=timeout)
        for call in (edge.join, edge.next_event, edge.status, edge.leave):
            with self.assertRaises(quiver.ClosedError):
                call()
        self.assertTrue(select.select([edge], [], [], 0)[0], "readable once it is over")

    def test_closing_ends_a_wait_and_so_does_ctrl_c(self):
        edge = self.open()
        closing = threading.Timer(0.3, edge.close)
        closing.start()
        with self.assertRaises(quiver.ClosedError):
            edge.next_event()
        closing.join()
        # Whoever starts the tests in the background has it ignored.
        former = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, former)
        with self.open() as edge:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                edge.next_event()

    def test_fork_has_no_drone(self):
        with self.open() as edge:
            child = os.fork()
            if child == 0:
                try:
                    edge.join()
                except quiver.ForkedError:
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_versions_of_package_and_extension_must_agree(self):
        self.assertEqual(quiver.__version__, quiver._quiver.__version__)
        program = "import quiver._quiver as q; q.__version__ = '9.9.9'; import importlib, quiver; importlib.reload(quiver)"
        # The package itself is imported first, with the version that it has.
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ImportError: quiver 0.1.0 was installed with the extension module of version 9.9.9", done.stderr)


class Group(unittest.TestCase):
    """A group of real services."""

    def setUp(self):
        self.deployment = Deployment().serve()
        self.addCleanup(self.deployment.close)
        self.edge = self.deployment.edge("edge-2")

    def open(self, name, **more):
        d = self.deployment
        token = d.token(name, "--group", "alpha")
        return quiver.Edge(
            d.directory / f"{name}-data",
            PASSPHRASE.encode(),
            leaders=[d.leader],
            deployment=d.file,
            token=pathlib.Path(token).read_bytes(),
            kgcs=[d.kgc],
            **more,
        )

    def test_example_joins_a_group_and_talks(self):
        d = self.deployment
        token = d.token("edge-1", "--group", "alpha")
        arguments = ["edge-1-data", d.leader, "--deployment", d.file, "--token", token, "--kgc", d.kgc]
        talk = d.start([sys.executable, str(TALK)], *arguments, stdin=subprocess.PIPE)
        talk.line("joined, with a key of 32 bytes")
        talk.child.stdin.write(b"hello from Python\n")
        talk.child.stdin.flush()
        heard = self.edge.line("hello from Python")
        self.assertIn('"from":"edge-1"', heard)
        self.assertIn('"signed":true', heard)
        d.run("edge", "send", "-d", "edge-2-data", "hello\x1b[2J to Python")
        talk.line("[chat] edge-2: hello.[2J to Python")
        talk.child.stdin.close()
        self.assertEqual(talk.child.wait(60), 0, talk.errors.read_text())
        talk.line("left")
        self.assertEqual(talk.errors.read_text(), "")
        d.members(1)

    def test_two_drones_in_a_process_agree_on_keys_and_messages(self):
        with self.open("edge-1") as one, self.open("edge-3") as three:
            one.join(60)
            three.join(60)
            self.deployment.members(3)
            keys = [edge.export_key("map", 10) for edge in (one, three)]
            self.assertEqual((keys[0].key, keys[0].counter), (keys[1].key, keys[1].counter))
            self.assertEqual(len(keys[0].key), 32)
            self.assertNotEqual(one.export_key("radio", 10).key, keys[0].key)
            one.send("chat", b"\x00\xff", timeout=10)
            one.send("chat", b"", signed=False, timeout=10)
            one.flush(timeout=10)
            one.flush()
            first, second = self.message(three), self.message(three)
            self.assertEqual((first.channel, first.data, first.sender), ("chat", b"\x00\xff", "edge-1"))
            self.assertEqual((second.data, second.sender, second.slot), (b"", None, one.status().slot))
            status = one.status()
            self.assertEqual((status.standing, status.name, status.group), ("member", "edge-1", "alpha"))
            self.assertEqual((status.leaders, status.digest), (1, three.status().digest))
            one.leave(60)
            self.assertEqual(one.status().standing, "left")
            one.join(60)
            self.deployment.members(3)
            self.deployment.run("leader", "evict", "edge-3")
            while not isinstance(three.next_event(60), quiver.Event.Evicted):
                pass
            with self.assertRaises(quiver.RefusedError):
                three.join(10)

    def test_ctrl_c_ends_every_call_that_waits(self):
        former = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, former)
        with self.open("edge-3") as edge:
            edge.join(60)
            edge.send("chat", b"hello", timeout=10)
            # A leader that does not answer keeps them waiting: `flush` for five seconds, `leave` for ever.
            leader = next(one for one in self.deployment.processes if os.path.basename(one.child.args[0]) == "leader")
            leader.child.send_signal(signal.SIGSTOP)
            self.addCleanup(leader.child.send_signal, signal.SIGCONT)
            for call in (edge.flush, edge.leave):
                begun = time.monotonic()
                threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                with self.assertRaises(KeyboardInterrupt):
                    call()
                self.assertLess(time.monotonic() - begun, 4)

    def test_token_that_is_used_up_is_refused_by_the_kgc(self):
        token = self.deployment.directory / "edge-2.token"
        d = self.deployment
        edge = quiver.Edge(d.directory / "copy", b"x", leaders=[d.leader], deployment=d.file, token_file=token, kgcs=[d.kgc])
        with self.assertRaises(quiver.RefusedError) as caught:
            edge.join(60)
        self.assertIn("already used", str(caught.exception))
        edge.close()

    def message(self, edge):
        while not isinstance(event := edge.next_event(60), quiver.Event.Message):
            self.assertIsNotNone(event)
        return event


if __name__ == "__main__":
    unittest.main()
