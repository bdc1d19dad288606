"""System ids above 255 through two Quiver ends: what programs of 8 bits are told, and flights of programs of 32 bits.

MAVSDK has wide ids, and no release of pymavlink has. With one that has (its master, in PYTHONPATH) everything runs.
"""

import json
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import ground
from air import Air, Line, free_port
from ground import MISSION, Pymavlink, eventually
from pymavlink.dialects.v20 import common as m
from test_mavlink import Through, only_quiver
from vehicle import MARK, Vehicle

VEHICLE, STATION = 70000, 70001
SYSID32, TARGET32 = 2, 4
VECTORS = pathlib.Path(__file__).parents[3] / "proto/mavlink/tests/vectors/wide.txt"
only_wide = unittest.skipUnless(hasattr(m, "MAVLINK_IFLAG_SYSID32"), "this pymavlink has no wide ids")


def vectors():
    """Rows of the file: name, flags, system, target or None, message id, payload, frame, the same signed."""
    for line in VECTORS.read_text().splitlines():
        if not line.startswith("#"):
            name, flags, system, target, kind, *content = line.split()
            numbers = int(flags), int(system), None if target == "-" else int(target), int(kind)
            yield name, *numbers, *map(bytes.fromhex, content)


def heartbeat(system):
    """A heartbeat of a PX4 quadrotor with a wide system id."""
    head = struct.pack("<BBBBBIBHB", m.PROTOCOL_MARKER_V2, 9, SYSID32, 0, 0, system, 1, 0, 0)
    frame = head + struct.pack("<IBBBBB", 4 << 16, m.MAV_TYPE_QUADROTOR, m.MAV_AUTOPILOT_PX4, 0x81, 4, 3)
    crc = m.x25crc(frame[1:])
    crc.accumulate(bytes([m.MAVLink_heartbeat_message.crc_extra]))
    return frame + struct.pack("<H", crc.crc)


@only_quiver
class Released(unittest.TestCase):
    """A ground station of 255 beside a vehicle above it, with the programs that are released."""

    def setUp(self):
        self.through = Through(systems=(VEHICLE, 255))
        self.addCleanup(self.through.close)
        host, port = self.through.vehicle.removeprefix("udpout:").split(":")
        self.vehicle = self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.vehicle.connect((host, int(port)))
        self.vehicle.setblocking(False)

    def test_mavsdk_sees_it_and_asks_it_by_its_number(self):
        see = "from mavsdk import Configuration, Mavsdk; s = Mavsdk(Configuration.create_manual(255, 190, True)); "
        see += f"s.add_any_connection('udpin://127.0.0.1:{self.through.ground}'); "
        see += f"print(s.first_autopilot({ground.PATIENCE}).get_system_id(), flush=True); import time; time.sleep(600)"
        out = self.enterContext(tempfile.NamedTemporaryFile("w+"))
        station = subprocess.Popen([sys.executable, "-c", see], stdout=out, stderr=subprocess.DEVNULL)
        self.addCleanup(station.wait)
        self.addCleanup(station.kill)
        asked = eventually("a command in a header with a wide target", self.asked)
        # Behind 10 bytes of the header.
        self.assertEqual(asked[10:14], struct.pack("<I", VEHICLE))
        said = lambda: pathlib.Path(out.name).read_text().split()
        eventually("its number", lambda: (self.asked() or True) and str(VEHICLE) in said())

    def asked(self):
        """A frame with a wide target that came to the vehicle, which beats meanwhile."""
        self.vehicle.send(heartbeat(VEHICLE))
        time.sleep(0.1)
        try:
            while frame := self.vehicle.recv(300):
                if frame[0] == m.PROTOCOL_MARKER_V2 and frame[2] & TARGET32:
                    return frame
        except BlockingIOError:
            return None

    def test_pymavlink_is_told_once_and_its_link_goes_on(self):
        through, vehicle = self.through, self.vehicle
        station = Pymavlink(through.ground, target=255)
        self.addCleanup(station.close)
        told, until = [], time.monotonic() + 8
        while time.monotonic() < until:
            vehicle.send(heartbeat(VEHICLE))
            message = station.link.recv_match(type="STATUSTEXT", blocking=True, timeout=0.1)
            if message is not None and str(VEHICLE) in message.text:
                told.append(message)
        self.assertEqual([message.text for message in told], [f"Quiver: system {VEHICLE} needs 32-bit ids"])
        # Under the number of its own end, which it knows.
        self.assertEqual((told[0].get_srcSystem(), told[0].get_srcComponent()), (255, 240))
        status = json.loads(through.between.run("edge", "status", "-d", "gcs-data", "--json"))
        (endpoint,) = status["mavlink"]["endpoints"]
        self.assertIn(str(VEHICLE), endpoint["narrow"])
        self.assertGreater(endpoint["wide_frames"][0], 10)
        # The vehicle is given a number that the station knows.
        through.between.run("leader", "system-id", "grant", "edge-1", "7")
        known = m.MAVLink(None, srcSystem=7, srcComponent=1)
        beat = m.MAVLink_heartbeat_message(2, 3, 0, 0, 4, 3).pack(known)
        station.target = 7
        station.receive("HEARTBEAT", again=lambda: vehicle.send(beat))


@only_wide
class Vectors(unittest.TestCase):
    """Frames of proto/mavlink's tests as pymavlink reads and writes them."""

    def test_pymavlink_reads_all_and_writes_those_that_it_would_send(self):
        written = 0
        for name, flags, system, target, kind, _, *frames in vectors():
            for frame, key in zip(frames, (None, bytes([42] * 32)), strict=True):
                reader, writer = m.MAVLink(None), m.MAVLink(None, srcSystem=system, srcComponent=11)
                reader.signing.secret_key = key
                message = reader.parse_char(frame)
                self.assertEqual((message.get_srcSystem(), message.get_msgId()), (system, kind), frame.hex())
                self.assertEqual(message.get_header().incompat_flags & 6, flags)
                self.assertEqual(message.get_signed(), key is not None)
                if target is not None:
                    self.assertEqual(message.get_target_system(), target)
                # It sends no small id in four bytes, but takes one.
                if name != "small":
                    writer.seq, signing = message.get_seq(), writer.signing
                    signing.secret_key, signing.sign_outgoing = key, key is not None
                    signing.link_id, signing.timestamp = 3, 1000
                    self.assertEqual(message.pack(writer).hex(), frame.hex())
                    written += 1
        self.assertGreater(written, 40)


@only_wide
@only_quiver
class Wide(unittest.TestCase):
    """A vehicle above 255, commanded by a station above 255, or of 255."""

    def fly(self, air, station=STATION, **more):
        through = Through(air, systems=(VEHICLE, station), **more)
        self.addCleanup(through.close)
        vehicle = Vehicle(through.vehicle, system=VEHICLE)
        self.addCleanup(vehicle.close)
        return through, vehicle

    def everything(self, through, vehicle, value):
        station = Pymavlink(through.ground, system=STATION, target=VEHICLE)
        self.addCleanup(station.close)
        station.everything(value)
        self.arrived(vehicle, value)
        return station

    def arrived(self, vehicle, value, command=m.MAV_CMD_NAV_RETURN_TO_LAUNCH):
        self.assertTrue(vehicle.armed)
        self.assertEqual(vehicle.parameters[ground.PARAMETER], value)
        self.assertIn(command, [number for number, _, _ in vehicle.commands])

    def test_pymavlink_commands_it_over_datagrams_that_get_lost(self):
        through, vehicle = self.fly(Air(loss=0.2, doubled=0.1, late=0.2))
        station = self.everything(through, vehicle, 7.25)
        self.assertEqual(len(vehicle.mission), len(MISSION))
        # Evicted, it is heard no more, and the station is told by its number.
        through.between.run("leader", "evict", str(VEHICLE))
        text = lambda message: f"system {VEHICLE} was evicted" in message.text
        station.target = STATION
        station.receive("STATUSTEXT", where=text)
        time.sleep(1)
        station.drain()
        station.target = VEHICLE
        with self.assertRaises(AssertionError):
            station.receive("HEARTBEAT", "ATTITUDE", patience=4)
        self.assertNotIn(MARK.encode(), b"".join(through.air.kept))

    def test_pymavlink_commands_it_over_a_pair_of_radios(self):
        through, vehicle = self.fly(Line(5_760))
        self.everything(through, vehicle, 8.25)

    def test_mavsdk_commands_it(self):
        through, vehicle = self.fly(Air(), station=255)
        seen = ground.mavsdk(through.ground, 6.25)
        self.assertEqual(seen["system"], VEHICLE)
        # By a mode of PX4.
        self.arrived(vehicle, 6.25, m.MAV_CMD_DO_SET_MODE)

    def test_mavproxy_commands_it(self):
        through, vehicle = self.fly(Air(), station=255)
        with tempfile.TemporaryDirectory() as directory:
            ground.mavproxy(through.ground, 9.25, pathlib.Path(directory))
        self.arrived(vehicle, 9.25)


if __name__ == "__main__":
    unittest.main(verbosity=2)
