"""Quiver's services as processes on loopback, in a temporary directory. Their programs are in QUIVER_PROGRAMS."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

PASSPHRASE = "correct-horse-battery-staple"
PATIENCE = 120.0
ANY = "/ip4/127.0.0.1/tcp/0"


def eventually(what, look):
    """What ``look`` finds, once it finds something."""
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > until:
            raise AssertionError(f"waited in vain: {what()}")
        time.sleep(0.05)
    return found


class Process:
    """A running program; its output goes to a file."""

    def __init__(self, command, directory, name, **more):
        self.path = directory / f"{name}.out"
        with open(self.path, "wb") as out, open(directory / f"{name}.err", "wb") as err:
            self.child = subprocess.Popen(
                command, cwd=directory, stdin=more.pop("stdin", subprocess.DEVNULL), stdout=out, stderr=err, **more
            )
        self.errors = directory / f"{name}.err"

    def line(self, part):
        """The first line with this part."""
        return eventually(
            lambda: f"{part!r} in {self.path.read_text()} {self.errors.read_text()[-2000:]}",
            lambda: next((line for line in self.path.read_text().splitlines() if part in line), None),
        )

    def address(self):
        return self.line("listening on ").removeprefix("listening on ")

    def stop(self):
        self.child.kill()
        self.child.wait()
        if self.child.stdin:
            self.child.stdin.close()


class Deployment:
    """An operator, a KGC, and the leader of group alpha, running."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory()
        self.directory = pathlib.Path(self._directory.name)
        self.processes = []
        self.run("kgc", "operator", "new", "--out", "operator")
        self.run("kgc", "init", "--deployment", "alps", "--operator", "operator.pub")
        self.file = str(self.directory / "kgc-data/deployment.toml")

    def serve(self, *more):
        self.kgc = self.start("kgc", "serve", "--listen", ANY).address()
        token = self.token("leader-1", "--leads", "alpha")
        serve = ["serve", "--kgc", self.kgc, "--listen", ANY, "--deployment", self.file, "--token", token, *more]
        self.leader = self.start("leader", *serve).address()
        return self

    def command(self, program, *arguments):
        return [os.path.join(os.environ["QUIVER_PROGRAMS"], program), *arguments]

    def environment(self):
        return {**os.environ, "QUIVER_PASSPHRASE": PASSPHRASE, "QUIVER_EDGE_RETRY": "300ms", "QUIVER_LEADER_BATCHING": "50ms"}

    def run(self, program, *arguments):
        command = self.command(program, *arguments)
        done = subprocess.run(command, cwd=self.directory, env=self.environment(), capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stderr}")
        return done.stdout

    def start(self, program, *arguments, **more):
        command = self.command(program, *arguments) if isinstance(program, str) else [*program, *arguments]
        name = f"log-{len(self.processes)}"
        process = Process(command, self.directory, name, env=self.environment(), **more)
        self.processes.append(process)
        return process

    def token(self, name, *rest):
        file = str(self.directory / f"{name}.token")
        self.run("kgc", "token", "issue", "--operator", "operator.key", "--name", name, "--out", file, *rest)
        return file

    def edge(self, name):
        """A drone of the program `edge`; what happens to it is in its output as JSON."""
        token = self.token(name, "--group", "alpha")
        run = ["run", "--json", "-d", f"{name}-data", "--kgc", self.kgc, "--leader", self.leader]
        edge = self.start("edge", *run, "--deployment", self.file, "--token", token)
        edge.line('"event":"key"')
        return edge

    def members(self, count):
        """Waits until the group has so many members that have the newest key."""

        def served():
            status = json.loads(self.run("leader", "status", "--json"))
            return status["acknowledged"] == count and status["members"] == count

        eventually(lambda: self.run("leader", "status"), served)

    def close(self):
        for process in self.processes:
            process.stop()
        self._directory.cleanup()
