"""Unmodified ground stations command a vehicle through two Quiver ends: the programs are in QUIVER_PROGRAMS.

With MAVLINK_PLAIN=1 a proxy takes the place of the services, to tell whether a failure is of the programs and their
vehicle or of what is between them; then what only Quiver does is skipped.
"""

import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests"))

import ground
from air import Air, free_port
from ground import MISSION, Pymavlink, eventually
from plain import Plain
from pymavlink.dialects.v20 import common as m
from services import Deployment
from vehicle import MARK, Vehicle

PLAIN = bool(os.environ.get("MAVLINK_PLAIN"))
only_quiver = unittest.skipIf(PLAIN, "there is no group")


class Quiver(Deployment):
    """A KGC, a leader, a vehicle's edge, and a ground station's; between the two edges is the air."""

    def __init__(self, air):
        super().__init__()
        self.air, self.ports = air, {}
        self.serve()
        self.vehicle = self.bridge("edge-1", 7, "udpin")
        self.ground = self.bridge("gcs", 255, "udpout")
        self.air.start()
        self.members(2)

    def bridge(self, name, system, way):
        """An edge with a MAVLink endpoint; the port of its program."""
        port, (mine, peer) = free_port(), self.air.member()
        self.ports[name] = mine
        self.run("leader", "system-id", "grant", name, str(system))
        token = self.token(name, "--group", "alpha")
        run = ["run", "--json", "-d", f"{name}-data", "--kgc", self.kgc, "--leader", self.leader]
        run += ["--mavlink", f"{way}:127.0.0.1:{port}", "--carrier", f"udp:127.0.0.1:{mine}+127.0.0.1:{peer}"]
        self.start("edge", *run, "--deployment", self.file, "--token", token).line('"event":"key"')
        return port

    def close(self):
        self.air.close()
        super().close()


class Through:
    """What is between a vehicle and a ground station."""

    def __init__(self, **air):
        if PLAIN:
            self.vehicle, self.ground = free_port(), free_port()
            self.between = Plain(self.vehicle, self.ground)
        else:
            self.air = Air(**air)
            self.between = Quiver(self.air)
            self.vehicle, self.ground = self.between.vehicle, self.between.ground

    def close(self):
        self.between.close()


class OneVehicle(unittest.TestCase):
    """Three ground stations, one after the other, on a good radio."""

    @classmethod
    def setUpClass(cls):
        cls.through = Through()
        cls.addClassCleanup(cls.through.close)

    def setUp(self):
        self.vehicle = Vehicle(f"udpout:127.0.0.1:{self.through.vehicle}")
        self.addCleanup(self.vehicle.close)

    def arrived(self, value, command):
        """What the vehicle was told is what the ground station said."""
        self.assertTrue(self.vehicle.armed)
        self.assertEqual(self.vehicle.parameters[ground.PARAMETER], value)
        self.assertIn((m.MAV_CMD_COMPONENT_ARM_DISARM, 1.0), [(number, first) for number, first, _ in self.vehicle.commands])
        self.assertIn(command, [number for number, _, _ in self.vehicle.commands])
        points = [(x, y) for kind, x, y, _ in self.vehicle.mission if kind == m.MAV_CMD_NAV_WAYPOINT]
        for (x, y, _), (there_x, there_y) in zip(MISSION, points, strict=True):
            self.assertLessEqual(abs(x - there_x) + abs(y - there_y), 2)

    def test_pymavlink_sees_uploads_writes_arms_and_commands(self):
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        station.everything(9.5)
        self.arrived(9.5, m.MAV_CMD_NAV_RETURN_TO_LAUNCH)

    def test_mavsdk_sees_uploads_writes_arms_and_commands(self):
        seen = ground.mavsdk(self.through.ground, 8.5)
        self.assertEqual(seen["system"], 7)
        # MAVSDK returns by a mode of PX4: custom mode 4 (auto), 5 (return).
        self.arrived(8.5, m.MAV_CMD_DO_SET_MODE)

    def test_mavproxy_sees_uploads_writes_arms_and_commands(self):
        with tempfile.TemporaryDirectory() as directory:
            said = ground.mavproxy(self.through.ground, 7.5, pathlib.Path(directory))
        self.assertIn("online system 7", said)
        self.arrived(7.5, m.MAV_CMD_NAV_RETURN_TO_LAUNCH)

    @only_quiver
    def test_the_air_shows_nothing_of_it(self):
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        station.receive("STATUSTEXT", where=lambda message: message.text == MARK)
        station.telemetry()
        air = b"".join(self.through.air.kept)
        self.assertGreater(len(air), 10_000)
        position = (473977418).to_bytes(4, "little")
        for plain in (MARK.encode(), position, ground.PARAMETER.encode()):
            self.assertNotIn(plain, air)

    @only_quiver
    def test_a_vehicle_that_says_it_is_another_is_not_heard(self):
        station = Pymavlink(self.through.ground, target=9)
        self.addCleanup(station.close)
        other = Vehicle(f"udpout:127.0.0.1:{self.through.vehicle}", system=9)
        self.addCleanup(other.close)
        with self.assertRaises(AssertionError):
            station.receive("HEARTBEAT", patience=5)


class BadRadio(unittest.TestCase):
    """Datagrams get lost, come twice and out of order."""

    @only_quiver
    def test_everything_arrives_that_ground_stations_repeat_and_nothing_twice(self):
        through = Through(loss=0.2, doubled=0.1, late=0.2)
        self.addCleanup(through.close)
        vehicle = Vehicle(f"udpout:127.0.0.1:{through.vehicle}")
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.everything(6.5)
        seen = []
        until = time.monotonic() + 5
        while time.monotonic() < until:
            seen.append(station.receive("ATTITUDE").time_boot_ms)
        self.assertEqual(len(seen), len(set(seen)), "doubled")
        # 20 frames a second were sent; a fifth of the datagrams is lost.
        self.assertGreater(len(seen), 50)


class Eviction(unittest.TestCase):
    """A vehicle is evicted while armed."""

    @only_quiver
    def test_an_evicted_vehicle_is_not_heard_and_hears_nothing(self):
        through = Through()
        self.addCleanup(through.close)
        vehicle = Vehicle(f"udpout:127.0.0.1:{through.vehicle}")
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.arm()
        through.between.run("leader", "evict", "edge-1")
        through.between.members(1)
        # What was under way when the key changed has arrived by now.
        time.sleep(1)
        while station.link.recv_match() is not None:
            pass
        with vehicle.lock:
            told = len(vehicle.commands)
        with self.assertRaises(AssertionError):
            station.receive("HEARTBEAT", "ATTITUDE", "COMMAND_ACK", patience=5, again=lambda: self.command(station))
        self.assertEqual(len(vehicle.commands), told)
        # Its own end says why, to the autopilot beside it and to the operator.
        eventually("a status text", lambda: ("STATUSTEXT", 7) in vehicle.heard, patience=15)
        status = json.loads(through.between.run("edge", "status", "-d", "edge-1-data", "--json"))
        self.assertNotEqual(status["standing"], "member", status)

    @staticmethod
    def command(station):
        station.link.mav.command_long_send(7, 1, m.MAV_CMD_NAV_RETURN_TO_LAUNCH, 0, 0, 0, 0, 0, 0, 0, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
