"""Ground stations, unmodified: pymavlink, MAVSDK, MAVProxy. Each sees a vehicle, loads a mission, writes a
parameter, arms and commands; what it was answered is asserted here, what arrived by the caller."""

import json
import os
import subprocess
import sys
import time

# Without it pymavlink sends MAVLink 1.
os.environ["MAVLINK20"] = "1"

from pymavlink import mavutil
from pymavlink.dialects.v20 import common as m

MISSION = [(473977418 + n * 1000, 85455939 + n * 700, 20.0 + n) for n in range(5)]
PARAMETER = "MPC_XY_VEL_MAX"
PATIENCE = 60.0
# Real ground stations repeat what is not answered.
AGAIN = 0.5


def eventually(what, look, patience=PATIENCE):
    """What ``look`` finds, once it finds something."""
    until = time.monotonic() + patience
    while not (found := look()):
        if time.monotonic() > until:
            raise AssertionError(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.02)
    return found


class Pymavlink:
    """A ground station of pymavlink, listening on a port."""

    def __init__(self, port, system=255, target=7):
        endpoint = f"udpin:127.0.0.1:{port}"
        self.link = mavutil.mavlink_connection(endpoint, source_system=system, source_component=190)
        self.target = target
        self.beaten = 0.0

    def close(self):
        self.link.close()

    def receive(self, *kinds, patience=PATIENCE, where=lambda message: True, again=None):
        """The next message of a kind from the target; ``again`` is called until it comes."""
        until, repeat = time.monotonic() + patience, 0.0
        while time.monotonic() < until:
            self.beat()
            if again is not None and time.monotonic() > repeat:
                repeat = time.monotonic() + AGAIN
                again()
            message = self.link.recv_match(type=list(kinds), blocking=True, timeout=0.1)
            if message is not None and message.get_srcSystem() == self.target and where(message):
                return message
        raise AssertionError(f"no {kinds} of system {self.target} within {patience:.0f} s")

    def drain(self):
        """Forgets what has arrived."""
        while self.link.recv_match() is not None:
            pass

    def beat(self):
        # Answers go to whoever sent: there is nobody before the first frame.
        if time.monotonic() > self.beaten + 1 and self.link.target_system:
            self.beaten = time.monotonic()
            self.link.mav.heartbeat_send(m.MAV_TYPE_GCS, m.MAV_AUTOPILOT_INVALID, 0, 0, m.MAV_STATE_ACTIVE)

    def telemetry(self):
        self.receive("HEARTBEAT")
        position = self.receive("GLOBAL_POSITION_INT")
        assert (position.lat, position.lon) == (473977418, 85455939), position
        self.receive("ATTITUDE")

    def upload_mission(self):
        answers = ("MISSION_REQUEST_INT", "MISSION_REQUEST", "MISSION_ACK")
        ask = lambda: self.link.mav.mission_count_send(self.target, 1, len(MISSION))
        message = self.receive(*answers[:2], again=ask)
        while message.get_type() != "MISSION_ACK":
            number = message.seq
            message = self.receive(*answers, again=lambda: self.send_item(number))
        assert message.type == m.MAV_MISSION_ACCEPTED, message

    def send_item(self, number):
        x, y, z = MISSION[number]
        frame, kind = m.MAV_FRAME_GLOBAL_RELATIVE_ALT_INT, m.MAV_CMD_NAV_WAYPOINT
        self.link.mav.mission_item_int_send(self.target, 1, number, frame, kind, 0, 1, 0, 1, 0, 0, x, y, z)

    def write_parameter(self, value):
        name = PARAMETER.encode()
        ask = lambda: self.link.mav.param_set_send(self.target, 1, name, value, m.MAV_PARAM_TYPE_REAL32)
        is_it = lambda message: message.param_id == PARAMETER and message.param_value == value
        self.receive("PARAM_VALUE", where=is_it, again=ask)

    def command(self, number, *parameters):
        numbers = [*parameters, *[0] * (7 - len(parameters))]
        ask = lambda: self.link.mav.command_long_send(self.target, 1, number, 0, *numbers)
        acknowledged = self.receive("COMMAND_ACK", where=lambda message: message.command == number, again=ask)
        assert acknowledged.result == m.MAV_RESULT_ACCEPTED, acknowledged

    def arm(self):
        self.command(m.MAV_CMD_COMPONENT_ARM_DISARM, 1)
        armed = lambda message: message.base_mode & m.MAV_MODE_FLAG_SAFETY_ARMED
        self.receive("HEARTBEAT", where=armed)

    def everything(self, value):
        self.telemetry()
        self.upload_mission()
        self.write_parameter(value)
        self.arm()
        self.command(m.MAV_CMD_NAV_RETURN_TO_LAUNCH)


def mavsdk(port, value):
    """MAVSDK in a process of its own: its native library ends with it, whatever happens."""
    command = [sys.executable, __file__, "mavsdk", str(port), str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run_mavsdk(port, value):
    from mavsdk import Configuration, Mavsdk
    from mavsdk.plugins.action import Action
    from mavsdk.plugins.mission import Mission, MissionItem, MissionPlan
    from mavsdk.plugins.param import Param
    from mavsdk.plugins.telemetry import Telemetry

    station = Mavsdk(Configuration.create_manual(255, 190, True))
    station.add_any_connection(f"udpin://127.0.0.1:{port}")
    system = station.first_autopilot(PATIENCE)
    assert system is not None, "MAVSDK sees no autopilot"
    telemetry = Telemetry(system)
    positions = []
    handle = telemetry.subscribe_position(lambda position, _: positions.append(position.latitude_deg))
    eventually("eight positions", lambda: len(positions) >= 8)
    telemetry.unsubscribe_position(handle)
    assert abs(positions[-1] - 47.3977418) < 1e-6, positions[-1]
    items = [
        MissionItem(latitude_deg=x / 1e7, longitude_deg=y / 1e7, relative_altitude_m=z, is_fly_through=True)
        for x, y, z in MISSION
    ]
    Mission(system).upload_mission(MissionPlan(items))
    parameters = Param(system)
    parameters.set_param_float(PARAMETER, value)
    assert parameters.get_param_float(PARAMETER) == value
    Action(system).arm()
    eventually("an armed vehicle", telemetry.armed)
    Action(system).return_to_launch()
    print(json.dumps({"positions": len(positions), "system": system.get_system_id()}))


def start_mavproxy(master, modules, directory, aircraft):
    """MAVProxy at an endpoint, and what it has printed so far."""
    program = os.path.join(os.path.dirname(sys.executable), "mavproxy.py")
    out = directory / "mavproxy.out"
    with open(out, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-u", program, f"--master={master}", "--default-modules", modules,
             f"--state-basedir={directory}", f"--aircraft={aircraft}"],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, cwd=directory,
        )
    return process, lambda: out.read_text(errors="replace")


def mavproxy(port, value, directory):
    """MAVProxy, told line by line as its operator would; what it printed."""
    waypoints = directory / "mission.txt"
    lines = ["QGC WPL 110"]
    for n, (x, y, z) in enumerate(MISSION):
        lines.append(f"{n}\t0\t3\t16\t0\t0\t0\t0\t{x / 1e7:.7f}\t{y / 1e7:.7f}\t{z:.6f}\t1")
    waypoints.write_text("\n".join(lines) + "\n")
    process, said = start_mavproxy(f"udpin:127.0.0.1:{port}", "param,wp,arm,mode,cmdlong,misc", directory, "vehicle")

    def tell(line, part):
        for _ in range(int(PATIENCE / 5)):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            try:
                return eventually(f"{part!r} in {said()}", lambda: part in said(), patience=5)
            except AssertionError as last:
                error = last
        raise error

    try:
        eventually("a vehicle that MAVProxy sees", lambda: "Detected vehicle" in said())
        tell("param fetch", "Received 2 parameters")
        # It says "Loaded" as soon as it has read the file.
        tell(f"wp load {waypoints}", "Got MISSION_ACK: TYPE_MISSION: ACCEPTED")
        tell(f"param set {PARAMETER} {value}", "")
        tell("arm throttle", "ARMED")
        tell("long NAV_RETURN_TO_LAUNCH 0 0 0 0 0 0 0", "Got COMMAND_ACK: NAV_RETURN_TO_LAUNCH: ACCEPTED")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
    return said()


def watch(port, target):
    """Prints, each second, how many messages of each kind came from the vehicle and how many of the commands sent
    to it were accepted so far, as JSON; in between asks it for its version."""
    station = Pymavlink(port, target=target)
    accepted = 0
    while True:
        until, seen = time.monotonic() + 1, {}
        ask = (m.MAV_CMD_REQUEST_MESSAGE, 0, m.MAVLINK_MSG_ID_AUTOPILOT_VERSION, *[0] * 6)
        if station.link.target_system:
            station.link.mav.command_long_send(target, 1, *ask)
        while (left := until - time.monotonic()) > 0:
            station.beat()
            message = station.link.recv_match(blocking=True, timeout=left)
            # The end beside the station speaks under the vehicle's number, as another component.
            if message is None or (message.get_srcSystem(), message.get_srcComponent()) != (target, 1):
                continue
            kind = message.get_type()
            seen[kind] = seen.get(kind, 0) + 1
            accepted += kind == "COMMAND_ACK" and message.result == m.MAV_RESULT_ACCEPTED
        print(json.dumps({"system": target, "messages": seen, "accepted": accepted}), flush=True)


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "mavsdk":
        run_mavsdk(int(words[0]), float(words[1]))
    elif what == "watch":
        watch(int(words[0]), int(words[1]))
    else:
        sys.exit("ground.py mavsdk PORT VALUE | ground.py watch PORT SYSTEM")
