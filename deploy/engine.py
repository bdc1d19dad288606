"""A container engine of our own with the Compose file running in it: what the tests and the measurements of this folder share."""

import argparse
import contextlib
import http.client
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 120
ROLES = ["kgc", "leader", "edge"]
DOCKER = "/usr/bin/docker"
COMPOSE = "/usr/bin/docker-compose"
SILENCE = 2


def why_no_engine():
    """Why no engine can run here, if so."""
    if os.geteuid() != 0:
        return "only root can start an engine"
    for tool in ["dockerd", "containerd", "iptables", "ldd", "strip", "readelf"]:
        if not shutil.which(tool):
            return f"there is no {tool} (on Debian: apt-get install docker.io docker-compose iptables binutils)"
    for tool in [DOCKER, COMPOSE]:
        if not Path(tool).exists():
            return f"there is no {tool} (on Debian: apt-get install docker.io docker-compose)"
    return None


def why_not(programs, tools):
    """Why this cannot run here, if so."""
    for role in ROLES:
        if not (programs / role).exists():
            return f"there is no program {programs / role} (cargo services)"
    for tool in tools:
        if not shutil.which(tool):
            return f"there is no {tool} (on Debian: apt-get install {tool})"
    return why_no_engine()


class Engine:
    """A container engine of our own."""

    def __init__(self, folder, edges, **settings):
        self.folder = folder
        self.socket = f"unix://{folder}/docker.sock"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DOCKER_HOST": self.socket,
            "DOCKER_BUILDKIT": "0",
            "COMPOSE_PROJECT_NAME": "quiver",
            "QUIVER_SECRETS": f"{folder}/secrets",
            "QUIVER_IMAGES": "quiver-test",
            "QUIVER_TAG": "test",
            "PROMETHEUS_IMAGE": "quiver-test/prometheus:test",
            "QUIVER_SILENCE": f"{SILENCE}s",
            "QUIVER_EDGE_TOKENS": str(edges + 20),
            # Dozens of containers at once take the engine some time.
            "COMPOSE_HTTP_TIMEOUT": "300",
            **settings,
        }

    def __enter__(self):
        subprocess.run([HERE / "passphrases", self.folder / "secrets"], stdout=subprocess.DEVNULL, check=True)
        log = open(self.folder / "dockerd.log", "wb")
        command = ["dockerd", "--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec"]
        command += ["--pidfile", f"{self.folder}/pid", "-H", self.socket, "--bridge", "none"]
        self.daemon = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            eventually("the engine answers", lambda: self.docker("version", check=False).returncode == 0)
        except BaseException:
            self.daemon.kill()
            print((self.folder / "dockerd.log").read_text()[-3000:], file=sys.stderr)
            raise
        return self

    def __exit__(self, *_):
        self.compose("down", "--volumes", "--timeout", "2", check=False)
        self.daemon.terminate()
        try:
            self.daemon.wait(30)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()

    def run(self, *command, check=True, **more):
        done = subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def docker(self, *arguments, **more):
        return self.run(DOCKER, *arguments, **more)

    def ask(self, path):
        """What the engine's interface answers at this path."""
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(connection):
            connection.sock.connect(f"{self.folder}/docker.sock")
            connection.request("GET", path)
            return json.load(connection.getresponse())

    def passphrase(self, service):
        """What opens the state files of this service of the Compose file."""
        return (self.folder / "secrets" / service).read_text().strip()

    def compose(self, *arguments, **more):
        return self.run(COMPOSE, "-f", str(HERE / "compose.yaml"), *arguments, **more)


def eventually(what, look, patience=PATIENCE, interval=0.1):
    """Waits until `look` finds something true; returns it and how long it took."""
    begun = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() - begun > patience:
            raise AssertionError(f"waited {patience} s in vain: {what}")
        time.sleep(interval)


@contextlib.contextmanager
def step(what):
    begun = time.monotonic()
    print(f"   {what} …", flush=True)
    yield
    print(f"   {what}: {time.monotonic() - begun:.1f} s", flush=True)


def libraries(program):
    """What a dynamic program needs to run: the loader and the libraries. Nothing for a static one."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", listed.stdout) if listed.returncode == 0 else []


def build(engine, programs):
    context = engine.folder / "context"
    for folder, mode in [("data", 0o700), ("tokens", 0o700), ("shared", 0o755)]:
        (context / "volumes" / folder).mkdir(parents=True)
        (context / "volumes" / folder).chmod(mode)
    for role in ROLES:
        root = context / role
        (root / "bin").mkdir(parents=True)
        (root / "bin").chmod(0o755)
        subprocess.run(["strip", "-o", root / "bin" / role, programs / role], check=True)
        for library in libraries(programs / role):
            place = root / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), place)
        file = str(HERE / "Dockerfile.prebuilt")
        engine.docker("build", "-f", file, "--target", role, "-t", f"quiver-test/{role}:test", str(context))
        program_is_not_the_services(engine, role)


def program_is_not_the_services(engine, role):
    """Root owns whatever the image runs, and nobody else may write to it; the service owns what volumes are mounted on."""
    container = engine.docker("create", f"quiver-test/{role}:test").stdout.strip()
    exported = subprocess.run([DOCKER, "export", container], env=engine.environment, stdout=subprocess.PIPE, check=True).stdout
    engine.docker("rm", container)
    with tarfile.open(fileobj=io.BytesIO(exported)) as files:
        held = {file.name.rstrip("/"): file for file in files}
    owners = {name: held[name].uid for name in ["bin", f"bin/{role}", "data", "tokens", "shared"]}
    assert owners == {"bin": 0, f"bin/{role}": 0, "data": 10001, "tokens": 10001, "shared": 10001}, owners
    # What every engine puts into a container itself is not the image's.
    ours = {name: file for name, file in held.items() if name.split("/")[0] not in ("", ".", ".dockerenv", "dev", "etc", "proc", "sys")}
    written = [name for name, file in ours.items() if not file.issym() and file.mode & 0o022]
    assert not written, f"others may write to {written}"


class Stack:
    """The services, of which so many edges are begun with, so many of those behind relays (of the profile `relays`)."""

    def __init__(self, engine, number, relayed=0):
        self.engine = engine
        self.number = number
        self.relayed = relayed
        self.addresses = {}

    def up(self):
        """From nothing until every edge has the key; returns the epoch."""
        with step(f"compose up with {self.number} edges, until every edge has the key"):
            scales = {"edge": self.number - self.relayed} | ({"relayed-edge": self.relayed} if self.relayed else {})
            self.engine.compose("up", "-d", *[word for name, number in scales.items() for word in ["--scale", f"{name}={number}"]])
            return self.served(self.number)

    def name(self, service):
        return f"quiver_{service}_1"

    def edges(self, services=("edge", "relayed-edge")):
        """Those that name the leaders, then those that name relays."""
        filters = [word for service in services for word in ["--filter", f"name=quiver_{service}_"]]
        names = self.engine.docker("ps", "-a", "--format", "{{.Names}}", *filters).stdout
        return sorted(names.split(), key=lambda name: (name.split("_")[1], int(name.rsplit("_", 1)[1])))

    def ask(self, container, *command):
        return self.engine.docker("exec", container, *command, check=False)

    def status(self, container, program):
        answer = self.ask(container, f"/bin/{program}", "status", "--json")
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def leads(self, service):
        status = self.status(self.name(service), "leader")
        return status if status and status["stance"] == "leading" else None

    def deputy(self):
        """Which service stands by behind the leader, as soon as one does."""
        lost = self.leader()
        eventually("a deputy stands by", lambda: (self.leads(lost) or {}).get("deputies") == 1)
        return "leader-2" if lost == "leader-1" else "leader-1"

    def leader(self):
        """Which service leads, as soon as one does."""
        return eventually("a leader", lambda: next(filter(self.leads, ["leader-1", "leader-2"]), None))

    def served(self, members, after=(0, 0), by=("leader-1", "leader-2")):
        """Waits until all so many members acknowledged an epoch after this one; returns that epoch."""

        def look():
            status = next(filter(None, map(self.leads, by)), None)
            if not status:
                return None
            epoch = (status["term"], status["counter"])
            return epoch > after and status["members"] == status["acknowledged"] == members and epoch

        return eventually(f"{members} members served by one of {by} after {after}", look)

    def epochs(self):
        """The epoch that each edge holds, by its name."""

        def one(container):
            status = self.status(container, "edge")
            return status and status["synced"] and (status["name"], (status["term"], status["counter"]))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(one, self.edges()))
        return dict(found) if all(found) else None

    def ready(self, container, program):
        return self.ask(container, f"/bin/{program}", "health").returncode == 0

    def all_ready(self, containers, program):
        with ThreadPoolExecutor(8) as pool:
            eventually(f"{containers} ready", lambda: all(pool.map(lambda one: self.ready(one, program), containers)))

    def unready(self, container, program, part):
        def look():
            answer = self.ask(container, f"/bin/{program}", "health")
            return answer.returncode == 1 and re.search(part, answer.stderr)

        eventually(f"{container} not ready because of {part}", look)

    def heard_by_all(self, words, sender):
        def heard(container):
            return container == sender or words in self.engine.docker("logs", container).stdout

        eventually(f"{words} heard by all", lambda: all(map(heard, self.edges())))

    def address(self, container):
        """Where the container is on the stack's network, which this machine has a bridge to."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.engine.docker("inspect", "--format", form, container).stdout.strip()

    def metrics(self, container):
        """What the service counts, by the names of the metrics; those with labels under all of it."""
        if container not in self.addresses:
            self.addresses[container] = self.address(container)
        with urllib.request.urlopen(f"http://{self.addresses[container]}:9464/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def usage(self, container):
        """What the container uses: processor time since its start in seconds, memory and its peak, bytes sent, received and on disk."""
        said = self.engine.ask(f"/containers/{container}/stats?stream=false&one-shot=true")
        networks = said.get("networks", {}).values()
        form = "{{range .Mounts}}{{if eq .Destination \"/data\"}}{{.Source}}{{end}}{{end}}"
        data = Path(self.engine.docker("inspect", "--format", form, container).stdout.strip())
        memory = said["memory_stats"]
        # Files that the kernel keeps in memory for the container are not what it needs.
        cached = memory["stats"].get("inactive_file", 0)
        return {
            "cpu": said["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            "memory": memory["usage"] - cached,
            "peak": memory.get("max_usage", memory["usage"]),
            "sent": sum(network["tx_bytes"] for network in networks),
            "received": sum(network["rx_bytes"] for network in networks),
            "disk": sum(512 * file.stat().st_blocks for file in data.rglob("*") if file.is_file()),
        }

    def scale(self, number):
        """So many edges, those behind relays included, which stay as they are."""
        self.engine.compose("up", "-d", "--no-deps", "--no-recreate", "--scale", f"edge={number - self.relayed}", "edge")


def arguments(description):
    """The command line that everything here has."""
    described = description.splitlines()
    parser = argparse.ArgumentParser(description=described[0], epilog=" ".join(described[1:]))
    parser.add_argument("programs", nargs="?", default="target/debug", type=Path, help="the folder with the programs kgc, leader and edge")
    parser.add_argument("--edges", type=int, default=20, help="how many edges the stack begins with")
    return parser


def hosted(name, options, live, tools=(), besides=lambda: None, relayed=0, **settings):
    """Calls `live`, which needs these tools, with a stack whose images are built and that does not run yet; returns the exit code.

    `besides` tells why `live` cannot run, if so; `relayed` of the edges are behind relays; `settings` are variables of the Compose file.
    """
    programs = options.programs.resolve()
    reason = why_not(programs, tools) or besides()
    if reason:
        print(f"{name}: skipped: {reason}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    folder = Path(tempfile.mkdtemp(prefix="quiver-deploy-"))
    try:
        with Engine(folder, options.edges, **settings) as engine:
            try:
                with step("images"):
                    build(engine, programs)
                live(Stack(engine, options.edges, relayed))
            except BaseException:
                logs = engine.compose("logs", "--tail", "15", check=False).stdout
                print(engine.docker("ps", "-a", check=False).stdout, logs[-20000:], file=sys.stderr)
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0
