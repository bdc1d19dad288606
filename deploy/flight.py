"""The Compose file's profile `mavlink`: a vehicle and a ground station, programs of pymavlink, through two edges."""

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from engine import HERE, eventually, libraries

IMAGE = "quiver-test/mavlink:test"
PROGRAMS = HERE.parent / "edge/tests/mavlink"
SYSTEM_IDS = "vehicle-1=1,ground-1=255"
SERVICES = ["vehicle", "ground", "vehicle-end", "ground-end"]
# Packages of which pymavlink's own ones that are used here are made.
PACKAGES = ["pymavlink", "lxml", "fastcrc"]
# What an interpreter has for those who develop with it.
UNUSED = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "config-*")
# Longer than what was under way takes to arrive.
SILENCE = 10


def why_not():
    """Why this cannot run here, if so."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"this Python has no {', '.join(missing)} (.ci/deploy all makes one)" if missing else None


def build(engine):
    """An image of the interpreter that runs this and its pymavlink, laid out as `deploy/mavlink/Dockerfile` does elsewhere."""
    root = engine.folder / "mavlink"
    program = Path(sys.executable).resolve()

    def copy(source, to, **more):
        place = root / str(to).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place, **more)

    copy(program, program)
    standard = Path(sysconfig.get_path("stdlib"))
    copy(standard, standard, ignore=UNUSED)
    for name in PACKAGES:
        package = Path(importlib.util.find_spec(name).origin).parent
        # Compiled already: to compile a dialect takes more memory than the container has.
        copy(package, f"/opt/packages/{name}")
    for name in ["vehicle.py", "ground.py"]:
        copy(PROGRAMS / name, f"/opt/mavlink/{name}")
    needed = {library for file in [program, *root.rglob("*.so")] for library in libraries(file)}
    for library in sorted(needed - {str(program)}):
        copy(Path(library).resolve(), library)
    changes = [f'ENTRYPOINT ["{program}"]', "USER 10001:10001", "WORKDIR /opt/mavlink", "ENV PYTHONPATH=/opt/packages"]
    changes += ["ENV PYTHONUNBUFFERED=1", "ENV PYTHONDONTWRITEBYTECODE=1"]
    archive = engine.folder / "mavlink.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    engine.docker("import", *[word for change in changes for word in ["--change", change]], str(archive), IMAGE)


class Flight:
    """The profile, running: two members more."""

    def __init__(self, stack):
        self.stack = stack
        self.ground = stack.name("ground")
        self.compose("up", "-d", "--no-recreate", *SERVICES)

    def compose(self, *arguments):
        self.stack.engine.compose("--profile", "mavlink", *arguments)

    def seen(self):
        """What the ground station saw of the vehicle, a line for each second."""
        return [json.loads(line) for line in self.stack.engine.docker("logs", self.ground).stdout.splitlines()]

    def has_telemetry(self, since=0):
        """The ground station sees telemetry, and the vehicle answers its commands, in lines after this number."""

        def look():
            lines = self.seen()[since:]
            kinds = {kind for line in lines for kind in line["messages"]}
            wanted = {"HEARTBEAT", "ATTITUDE", "GLOBAL_POSITION_INT", "AUTOPILOT_VERSION", "COMMAND_ACK"}
            return wanted <= kinds and lines[-1]["accepted"] > lines[0]["accepted"]

        eventually("telemetry and answers at the ground", look)

    def passes(self, service):
        status = self.stack.status(self.stack.name(service), "edge")
        return status and status["mavlink"]["open"]

    def evict(self, name):
        answer = self.stack.ask(self.stack.name(self.stack.leader()), "/bin/leader", "evict", name)
        assert answer.returncode == 0, answer

    def vehicle_is_evicted(self, members, before):
        """Once all who remain have the next key, the ground station hears nothing of the vehicle, which goes on sending."""
        self.evict("vehicle-1")
        epoch = self.stack.served(members, before)
        eventually("the vehicle's end is shut", lambda: self.passes("vehicle-end") is False)
        sent = self.shut_out()
        time.sleep(1)
        since = len(self.seen()) + 1
        time.sleep(SILENCE)
        lines = self.seen()[since:]
        assert len(lines) > SILENCE / 2, "the ground station goes on"
        assert not any(line["messages"] for line in lines), lines
        assert self.shut_out() > sent, "the vehicle goes on"
        assert self.passes("ground-end"), "the others have the key"
        return epoch

    def shut_out(self):
        """How many frames of the vehicle its end let nowhere, for want of a key."""
        frames = self.stack.status(self.stack.name("vehicle-end"), "edge")["mavlink"]["frames"]
        return frames.get("to group: no key", 0)

    def end(self):
        """Without its members."""
        self.evict("ground-1")
        self.compose("rm", "--stop", "--force", *SERVICES)
