"""Unmodified ground stations command a vehicle through two Quiver ends: the programs are in QUIVER_PROGRAMS.

With MAVLINK_PLAIN=1 a proxy takes the place of the services, to tell whether a failure is of the programs and
their vehicle or of what is between them; then what only Quiver does is skipped.
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
from air import Air, Line, MavlinkLine, free_port
from ground import MISSION, Pymavlink, eventually
from plain import Plain
from pymavlink.dialects.v20 import common as m
from services import Deployment
from vehicle import MARK, Vehicle

PLAIN = bool(os.environ.get("MAVLINK_PLAIN"))
only_quiver = unittest.skipIf(PLAIN, "there is no group")


class Quiver(Deployment):
    """A KGC, a leader, a vehicle's edge, and the ground station's end: an edge too, or the leader. Between
    the two ends is the air. The system ids are the vehicle's and the ground station's."""

    def __init__(self, air, at_leader, vehicle, ground, systems=(7, 255)):
        super().__init__()
        self.air, self.systems = air, systems
        try:
            self.begin(at_leader, vehicle, ground)
        except BaseException:
            self.close()
            raise

    def begin(self, at_leader, vehicle, ground):
        ends = [self.flags(vehicle), self.flags(ground)]
        vehicle, ground = map(str, self.systems)
        if at_leader:
            self.serve("--system-id", f"edge-1={vehicle}", "--system-id", f"leader-1={ground}", *ends[1])
        else:
            self.serve()
            self.run("leader", "system-id", "grant", "edge-1", vehicle)
            self.run("leader", "system-id", "grant", "gcs", ground)
            self.bridge("gcs", ends[1])
        self.bridge("edge-1", ends[0])
        self.air.start()
        self.others = 0 if at_leader else 1
        self.members(1 + self.others)

    def flags(self, endpoint):
        """The flags of an end; or its file, if that is what the endpoint is."""
        if not endpoint.startswith("["):
            return ["--mavlink", endpoint, "--carrier", self.air.carrier()]
        file = self.directory / "quiver.conf"
        file.write_text(f"{endpoint}\n[QuiverEndpoint group]\nCarrier = {self.air.carrier()}\n")
        return ["--mavlink-config", str(file)]

    def bridge(self, name, flags):
        token = self.token(name, "--group", "alpha")
        run = ["run", "--json", "-d", f"{name}-data", "--kgc", self.kgc, "--leader", self.leader, *flags]
        self.start("edge", *run, "--deployment", self.file, "--token", token).line('"event":"key"')

    def close(self):
        super().close()
        self.air.close()


class Through:
    """What is between a vehicle and a ground station: where the vehicle connects, and the station's port."""

    def __init__(self, air=None, at_leader=False, cable=None, keys=None, systems=(7, 255)):
        self.vehicle, self.ground = f"udpout:127.0.0.1:{(port := free_port())}", free_port()
        if PLAIN:
            self.between = Plain(port, self.ground)
            return
        endpoint = f"udpin:127.0.0.1:{port}"
        if cable is not None:
            self.vehicle, endpoint = cable.names[0], f"serial:{cable.names[1]}:57600"
        if keys is not None:
            lines = [f"[UdpEndpoint autopilot]\nMode = Server\nAddress = 127.0.0.1\nPort = {port}"]
            endpoint = "\n".join([*lines, "AllowSrcSysOut = 255", f"SigningKeyFile = {keys}"])
        self.air = air or Air()
        self.between = Quiver(self.air, at_leader, endpoint, f"udpout:127.0.0.1:{self.ground}", systems)

    def close(self):
        self.between.close()


class OneVehicle(unittest.TestCase):
    """Three ground stations, one after the other, on a good radio."""

    @classmethod
    def setUpClass(cls):
        cls.through = Through()
        cls.addClassCleanup(cls.through.close)

    def setUp(self):
        self.vehicle = Vehicle(self.through.vehicle)
        self.addCleanup(self.vehicle.close)

    def arrived(self, value, command):
        """What the vehicle was told is what the ground station said."""
        self.assertTrue(self.vehicle.armed)
        self.assertEqual(self.vehicle.parameters[ground.PARAMETER], value)
        commands = [(number, first) for number, first, _ in self.vehicle.commands]
        self.assertIn((m.MAV_CMD_COMPONENT_ARM_DISARM, 1.0), commands)
        self.assertIn(command, [number for number, _ in commands])
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

    def test_pymavlink_counts_no_frames_as_lost_that_were_only_overtaken(self):
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        station.everything(6.25)
        # Signed items and answers between 60 frames of telemetry a second. One that is overtaken counts as some 255.
        before = station.link.mav_loss
        for _ in range(5):
            station.upload_mission()
            station.write_parameter(6.5)
            station.write_parameter(6.25)
        self.assertLess(station.link.mav_loss - before, 100)

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
    def test_a_frame_costs_at_most_thirteen_bytes_more_on_the_air(self):
        mav, air = self.vehicle.link.mav, self.through.air
        # Nobody is at the ground: what is on the air is the vehicle's, with its announcements.
        before = len(air.kept), mav.total_packets_sent, mav.total_bytes_sent
        time.sleep(6)
        frames, plain = mav.total_packets_sent - before[1], mav.total_bytes_sent - before[2]
        sent = sum(map(len, air.kept[before[0] :]))
        self.assertGreater(frames, 200)
        each = (sent - plain) / frames
        print(f"{frames} frames, {plain} bytes plain, {sent} on the air: {each:+.1f} a frame")
        self.assertGreater(sent, plain)
        self.assertLessEqual(sent, plain + 13 * frames)

    @only_quiver
    def test_a_vehicle_that_says_it_is_another_is_not_heard(self):
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        other = Vehicle(self.through.vehicle, system=9)
        self.addCleanup(other.close)
        seen, until = set(), time.monotonic() + 5
        while time.monotonic() < until:
            message = station.link.recv_match(blocking=True, timeout=0.1)
            if message is not None and message.get_type() == "HEARTBEAT":
                seen.add(message.get_srcSystem())
        # The vehicle that is meant comes by the same way at the same time.
        self.assertIn(7, seen)
        self.assertNotIn(9, seen)


class LeaderOnTheGround(unittest.TestCase):
    """The leader itself is the ground station's end."""

    @only_quiver
    def test_a_ground_station_at_the_leader_sees_uploads_writes_arms_and_commands(self):
        through = Through(at_leader=True)
        self.addCleanup(through.close)
        vehicle = Vehicle(through.vehicle)
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.everything(5.5)
        self.assertTrue(vehicle.armed)
        self.assertEqual(vehicle.parameters[ground.PARAMETER], 5.5)
        self.assertEqual(len(vehicle.mission), len(MISSION))


class SignedCable(unittest.TestCase):
    """An autopilot that was told a key for MAVLink's own signatures, at an end with a configuration file."""

    @only_quiver
    def test_signatures_stay_between_the_autopilot_and_its_end(self):
        key = bytes(range(32))
        with tempfile.NamedTemporaryFile("w", suffix=".key") as file:
            file.write(key.hex() + "\n")
            file.flush()
            through = Through(keys=file.name)
            self.addCleanup(through.close)
        vehicle = Vehicle(through.vehicle, key=key)
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.everything(3.5)
        self.assertTrue(vehicle.armed)
        self.assertFalse(station.receive("ATTITUDE").get_signed())
        # Without the key another program is heard by nobody.
        vehicle.close()
        other = Vehicle(through.vehicle)
        self.addCleanup(other.close)
        time.sleep(1)
        station.drain()
        with self.assertRaises(AssertionError):
            station.receive("ATTITUDE", "HEARTBEAT", patience=4)


class TwoRadios(unittest.TestCase):
    """Pseudo-terminals: an autopilot on a cable, and a pair of radios of 57,600 baud that know no MAVLink."""

    def setUp(self):
        cable, self.radios = Line(rate=100_000), Line(rate=5_760)
        cable.start()
        self.addCleanup(cable.close)
        self.through = Through(self.radios, at_leader=True, cable=cable)
        self.addCleanup(self.through.close)

    def vehicle(self, **more):
        vehicle = Vehicle(self.through.vehicle, **more)
        self.addCleanup(vehicle.close)
        return vehicle

    @only_quiver
    def test_everything_goes_over_serial_lines(self):
        vehicle = self.vehicle()
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        station.everything(4.5)
        self.assertTrue(vehicle.armed)
        self.assertEqual(vehicle.parameters[ground.PARAMETER], 4.5)
        self.assertEqual(len(vehicle.mission), len(MISSION))
        self.assertNotIn(MARK.encode(), b"".join(self.radios.kept))

    @only_quiver
    def test_a_usual_stream_costs_a_third_more_at_most(self):
        # Some 20 frames a second, as an autopilot sends by itself. A station that says nothing counts them.
        mav = self.vehicle(every=0.17).link.mav
        station = Pymavlink(self.through.ground)
        self.addCleanup(station.close)
        time.sleep(2)
        station.drain()
        before, began = (len(self.radios.sent[0]), mav.total_bytes_sent, mav.total_packets_sent), time.monotonic()
        arrived = 0
        while time.monotonic() < began + 10:
            message = station.link.recv_match(blocking=True, timeout=0.05)
            # The end beside the station speaks, too, as another component.
            arrived += message is not None and message.get_srcComponent() == 1
        took = time.monotonic() - began
        line = (len(self.radios.sent[0]) - before[0]) / took
        plain = (mav.total_bytes_sent - before[1]) / took
        sent = mav.total_packets_sent - before[2]
        print(f"{plain:.0f} bytes a second plain, {line:.0f} on the line; {arrived} of {sent} frames arrived")
        self.assertGreater(arrived, 0.9 * sent)
        self.assertGreater(plain, 600)
        # A kilobyte for the 744 bytes that a usual stream has.
        self.assertLess(line, plain * 1_000 / 744)


class MavlinkRadios(unittest.TestCase):
    """A pair of radios on serial lines that take nothing but MAVLink."""

    @only_quiver
    def test_everything_goes_in_mavlink_frames_that_show_nothing(self):
        radios = MavlinkLine(rate=5_760)
        through = Through(radios, at_leader=True)
        self.addCleanup(through.close)
        vehicle = Vehicle(through.vehicle, every=0.17)
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.everything(2.5)
        self.assertTrue(vehicle.armed)
        self.assertEqual(vehicle.parameters[ground.PARAMETER], 2.5)
        self.assertEqual(len(vehicle.mission), len(MISSION))
        # Each radio's word stays at its end, and nothing else of the radio's line is a frame there.
        eventually("RADIO_STATUS at the vehicle", lambda: ("RADIO_STATUS", 51) in vehicle.heard)
        word = station.link.recv_match(type="RADIO_STATUS", blocking=True, timeout=20)
        self.assertEqual((word.get_srcSystem(), word.rssi), (51, 180))
        self.assertNotIn("TUNNEL", {kind for kind, _ in vehicle.heard})
        # Whatever is on the air is a frame of MAVLink with a datagram, or a part of one.
        for sent in map(bytes, radios.sent):
            whole = [message.get_type() for message in m.MAVLink(None).parse_buffer(sent)]
            self.assertGreater(len(whole), 5)
            self.assertEqual(set(whole), {"TUNNEL"})
            self.assertNotIn(MARK.encode(), sent)


class BadRadio(unittest.TestCase):
    """Datagrams get lost, come twice and out of order."""

    @only_quiver
    def test_everything_arrives_that_ground_stations_repeat_and_nothing_twice(self):
        through = Through(Air(loss=0.2, doubled=0.1, late=0.2))
        self.addCleanup(through.close)
        vehicle = Vehicle(through.vehicle)
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
        vehicle = Vehicle(through.vehicle)
        self.addCleanup(vehicle.close)
        station = Pymavlink(through.ground)
        self.addCleanup(station.close)
        station.arm()
        through.between.run("leader", "evict", "edge-1")
        through.between.members(through.between.others)
        # What was under way when the key changed has arrived by now.
        time.sleep(1)
        station.drain()
        with vehicle.lock:
            told = len(vehicle.commands)
        with self.assertRaises(AssertionError):
            kinds = ("HEARTBEAT", "ATTITUDE", "COMMAND_ACK")
            station.receive(*kinds, patience=5, again=lambda: self.command(station))
        self.assertEqual(len(vehicle.commands), told)
        # Its own end says why, to the autopilot beside it and to the operator.
        eventually("a status text", lambda: ("STATUSTEXT", 7) in vehicle.heard, patience=15)
        status = json.loads(through.between.run("edge", "status", "-d", "edge-1-data", "--json"))
        self.assertIs(status["mavlink"]["open"], False, status)

    @staticmethod
    def command(station):
        station.link.mav.command_long_send(7, 1, m.MAV_CMD_NAV_RETURN_TO_LAUNCH, 0, 0, 0, 0, 0, 0, 0, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
