"""The project's programs as processes on loopback, and edges of the reference beside them."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from quiver_reference.node import Node

PROGRAMS = Path(os.environ.get("QUIVER_PROGRAMS", "target/debug")).resolve()
# How long anything may take on a busy machine, in seconds.
PATIENCE = 60
ANY = "/ip4/127.0.0.1/tcp/0"


def free_address():
    """An address on loopback that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"/ip4/127.0.0.1/tcp/{listener.getsockname()[1]}"


async def eventually(what, look):
    """The first true value of `look()`, or an error that says what did not come."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = look()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"in {PATIENCE} s this did not come: {what}")


class Process:
    """A program that stays, with the lines that it prints."""

    def __init__(self, command, environment, directory, log):
        self.lines, self.log = [], log
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(command, env=environment, cwd=directory, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    async def line(self, part):
        def look():
            assert self.process.poll() is None or part in "\n".join(self.lines), self.log.read_text()[-2000:]
            return next((line for line in self.lines if part in line), None)

        return await eventually(f"a line with `{part}`", look)

    async def address(self):
        return (await self.line("listening on ")).removeprefix("listening on ")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


class Bench:
    """A deployment in a temporary directory: an operator, a KGC, and whatever runs of it."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="quiver-reference-")
        self.directory, self.running, self.nodes = Path(self.temporary.name), [], []
        # Time for which a leader waits for company.
        self.batching = "50ms"
        key = self.directory / "state.key"
        key.write_text(os.urandom(32).hex() + "\n")
        key.chmod(0o600)

    async def found(self, kem="none"):
        """Makes the operator's key and the KGC's, with this second factor of pairwise secrets."""
        await self.run("kgc", "operator", "new", "--out", "operator")
        await self.run("kgc", "init", "--deployment", "alps", "--operator", "operator.pub", "--kem", kem)

    def command(self, program, *words):
        return [PROGRAMS / program, "--key-file", "state.key", *words]

    def environment(self):
        # Everything is local: retry soon.
        return {"RUST_LOG": "debug", "QUIVER_EDGE_RETRY": "300ms", "QUIVER_EDGE_RETRY_MAX": "2s",
                "QUIVER_LEADER_BATCHING": self.batching, "QUIVER_LEADER_BATCHING_MAX": "12s",
                "QUIVER_KGC_POLL": "100ms"}

    async def finish(self, program, *words):
        """Runs to the end: exit code, output, complaint. Meanwhile the edges of the reference go on."""
        process = await asyncio.create_subprocess_exec(
            *self.command(program, *words), env=self.environment(), cwd=self.directory,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        try:
            output, complaint = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError:
            process.kill()
            raise
        return process.returncode, output.decode(), complaint.decode()

    async def run(self, program, *words):
        """Runs to a good end; its output."""
        code, output, complaint = await self.finish(program, *words)
        assert code == 0, f"{program} {words}: {complaint}"
        return output

    def start(self, program, *words):
        return self.begin(program, self.command(program, *words), self.environment())

    def begin(self, name, command, environment):
        log = self.directory / f"log-{len(self.running):02}-{name}"
        process = Process(command, environment, self.directory, log)
        self.running.append(process)
        return process

    async def token(self, name, *words):
        file = f"{name}.token"
        await self.run("kgc", "token", "issue", "--operator", "operator.key", "--name", name, "--out", file, *words)

    async def kgc(self):
        return await self.start("kgc", "serve", "--listen", ANY).address()

    def leader(self, kgc, name, listen, *words):
        return self.start("leader", "serve", "-d", f"{name}-data", "--kgc", kgc, "--listen", listen, "--deployment",
                          "kgc-data/deployment.toml", "--token", f"{name}.token", *words)

    def edge(self, kgc, name, *leaders, more=()):
        places = [word for leader in leaders for word in ("--leader", leader)]
        return self.start("edge", "run", "--json", "-d", f"{name}-data", "--kgc", kgc, *places, "--deployment",
                          "kgc-data/deployment.toml", "--token", f"{name}.token", *more)

    def reference(self, kgc, name, *leaders, deployment="kgc-data/deployment.toml"):
        """An edge of the reference; started anew, it goes on from its stored state."""
        path = self.directory
        node = Node(path / f"{name}-reference", path / deployment, "alpha", path / f"{name}.token",
                    [kgc], leaders)
        self.nodes.append(node)
        node.start()
        return node

    def program(self, name, kgc, leader):
        """The same as a program of its own."""
        words = "--data", f"{name}-reference", "--deployment", "kgc-data/deployment.toml", "--token", f"{name}.token"
        places = "--group", "alpha", "--kgc", kgc, "--leader", leader
        command = [sys.executable, "-m", "quiver_reference", *words, *places]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        return self.begin("reference", command, environment)

    async def status(self, program, name):
        """What a running program says of itself, or None."""
        code, output, _ = await self.finish(program, "status", "--json", "-d", f"{name}-data")
        return json.loads(output) if code == 0 else None

    async def close(self):
        for node in self.nodes:
            await node.stop()
        for process in self.running:
            process.kill()
        self.temporary.cleanup()
