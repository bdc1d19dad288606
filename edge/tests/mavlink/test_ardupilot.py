"""What an autopilot does in bulk arrives whole, in order and uncounted as lost, on a carrier that loses nothing."""

import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests"))

from air import free_port
from ardupilot import FILE, PARAMETERS, Copter
from ground import Pymavlink, eventually, start_mavproxy
from pymavlink import mavftp, mavutil
from pymavlink.dialects.v20 import common as m
from test_mavlink import Quiver, only_quiver

POINTS = 41
KEY = bytes(range(32))


class Direct:
    """Two carriers with nothing between them but this machine's loopback, which loses nothing."""

    def __init__(self):
        self.ports = [free_port(), free_port()]

    def carrier(self):
        here, there = self.ports
        self.ports.reverse()
        return f"udp:127.0.0.1:{here}+127.0.0.1:{there}"

    def start(self):
        """Nothing is between them."""

    def close(self):
        """Nothing is between them."""


class Station(Pymavlink):
    """A ground station at a port of TCP."""

    def __init__(self, port):
        self.link = eventually("a connection", lambda: self.connect(port))
        self.target, self.beaten = 7, 0.0

    @staticmethod
    def connect(port):
        endpoint = f"tcp:127.0.0.1:{port}"
        return mavutil.mavlink_connection(endpoint, source_system=255, source_component=190, retries=1)

    def mission(self, points):
        """Uploads a mission, and reads it back; how long the second took."""
        ask = lambda: self.link.mav.mission_count_send(self.target, 1, len(points))
        requests = ("MISSION_REQUEST_INT", "MISSION_ACK")
        message = self.receive("MISSION_REQUEST_INT", again=ask)
        while message.get_type() != "MISSION_ACK":
            number = message.seq
            message = self.receive(*requests, again=lambda: self.send_point(number, points[number]))
        assert message.type == m.MAV_MISSION_ACCEPTED, message
        began = time.monotonic()
        ask = lambda: self.link.mav.mission_request_list_send(self.target, 1)
        count = self.receive("MISSION_COUNT", again=ask).count
        read = []
        for number in range(count):
            ask = lambda: self.link.mav.mission_request_int_send(self.target, 1, number)
            is_it = lambda item: item.seq == number
            item = self.receive("MISSION_ITEM_INT", where=is_it, again=ask)
            read.append((item.x, item.y, item.z))
        self.link.mav.mission_ack_send(self.target, 1, m.MAV_MISSION_ACCEPTED)
        return read, time.monotonic() - began

    def send_point(self, number, point):
        frame, kind = m.MAV_FRAME_GLOBAL_RELATIVE_ALT_INT, m.MAV_CMD_NAV_WAYPOINT
        self.link.mav.mission_item_int_send(self.target, 1, number, frame, kind, 0, 1, 0, 0, 0, 0, *point)

    def parameters(self):
        """All parameters by one list, as it comes; those that did not come are asked for, and counted."""
        self.link.mav.param_request_list_send(self.target, 1)
        found, asked = {}, 0
        while len(found) < PARAMETERS:
            self.beat()
            message = self.link.recv_match(type="PARAM_VALUE", blocking=True, timeout=10)
            if message is not None:
                found[message.param_id] = message.param_value
                continue
            missing = next(number for number in range(PARAMETERS) if f"TEST_{number:03}" not in found)
            self.link.mav.param_request_read_send(self.target, 1, b"", missing)
            asked += 1
            assert asked < 20, f"{len(found)} parameters came"
        return found, asked

    def log(self, size):
        """A log as ground stations fetch it: all at once, then what is missing; and how often was asked."""
        self.link.mav.log_request_list_send(self.target, 1, 0, 0xFFFF)
        assert self.receive("LOG_ENTRY").size == size
        parts, asked = {}, 0
        while missing := [at for at in range(0, size, 90) if at not in parts]:
            first = missing[0]
            behind = next((at for at in range(first, size, 90) if at in parts), size)
            self.link.mav.log_request_data_send(self.target, 1, 1, first, behind - first)
            asked += 1
            assert asked < 50, f"{len(missing)} parts are missing"
            while behind - 1 >= first and (message := self.link.recv_match(type="LOG_DATA", blocking=True, timeout=3)):
                parts[message.ofs] = bytes(message.data[: message.count])
                if message.ofs + message.count >= behind:
                    break
        return b"".join(parts[at] for at in sorted(parts)), asked


@only_quiver
class Autopilot(unittest.TestCase):
    """One vehicle, its end, and the leader as the ground station's end: TCP programs, a carrier without loss."""

    @classmethod
    def setUpClass(cls):
        cls.vehicle_port, cls.ground_port = free_port(), free_port()
        cls.copter = Copter(cls.vehicle_port)
        cls.addClassCleanup(cls.copter.close)
        ends = f"tcp:127.0.0.1:{cls.vehicle_port}", f"tcpin:127.0.0.1:{cls.ground_port}"
        logs = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.logs = pathlib.Path(logs) / "flights"
        cls.quiver = Logged(Direct(), True, *ends, logs=cls.logs)
        cls.addClassCleanup(cls.quiver.close)

    def setUp(self):
        self.station = Station(self.ground_port)
        self.addCleanup(self.station.close)
        self.station.telemetry()
        # Frames of the first moment, before the table of system ids was there, are not lost on the way.
        self.settle()

    def settle(self):
        until = time.monotonic() + 1
        while time.monotonic() < until:
            self.station.beat()
            self.station.link.recv_match(blocking=True, timeout=0.1)
        self.lost = self.station.link.mav_loss

    def nothing_is_counted_as_lost(self):
        link = self.station.link
        self.assertEqual(link.mav_loss - self.lost, 0, f"of {link.mav_count} frames")

    def points(self):
        return [(473977418 + n * 1000, 85455939 + n * 700, 20.0 + n) for n in range(POINTS)]

    def test_1_parameters_mission_and_attitude_come_in_order_and_none_counts_as_lost(self):
        found, asked = self.station.parameters()
        self.assertEqual(found, self.copter.parameters)
        self.assertEqual(asked, 0)
        read, took = self.station.mission(self.points())
        self.assertEqual(read, self.points())
        self.station.command(m.MAV_CMD_COMPONENT_ARM_DISARM, 1)
        before, began, seen = 0, time.monotonic(), 0
        while time.monotonic() < began + 2:
            self.station.beat()
            message = self.station.link.recv_match(type="ATTITUDE", blocking=True, timeout=0.5)
            if message is not None:
                self.assertGreaterEqual(message.time_boot_ms, before, "telemetry out of order")
                before, seen = message.time_boot_ms, seen + 1
        print(f"mission of {POINTS} read in {took:.2f} s, {seen / 2:.0f} Hz of attitude")
        self.assertGreater(seen, 20)
        self.nothing_is_counted_as_lost()

    def test_2_signatures_from_end_to_end_hold(self):
        links = [self.copter.link, self.station.link]
        for link in links:
            link.setup_signing(KEY, sign_outgoing=True)
            self.addCleanup(link.disable_signing)
        self.station.receive("ATTITUDE", where=lambda message: message.get_signed())
        for link in links:
            # What was under way unsigned is not a refused signature.
            link.mav.signing.badsig_count = 0
        read, took = self.station.mission(self.points())
        self.assertEqual(read, self.points())
        refused = [link.mav.signing.badsig_count for link in links]
        print(f"signed mission of {POINTS} read in {took:.2f} s, refused {refused}")
        self.assertEqual(refused, [0, 0])
        # Each point that is refused costs a repetition, half a second here and a second in ground stations.
        self.assertLess(took, 10)

    def test_3_a_file_is_complete_and_answers_carry_no_signature(self):
        self.copter.file = os.urandom(15_000)
        client = mavftp.MAVFTP(self.station.link, 7, 1)
        before = self.air()
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "param.pck"
            client.cmd_get([FILE, str(path)])
            result = client.process_ftp_reply("OpenFileRO", timeout=30)
            self.assertEqual(result.error_code, 0)
            self.assertEqual(path.read_bytes(), self.copter.file)
        after = self.air()
        print(f"{after[0] - before[0]} datagrams and {after[1] - before[1]} bytes of air for {len(self.copter.file)} of the file")
        self.nothing_is_counted_as_lost()
        frames = self.passed("FILE_TRANSFER_PROTOCOL")
        answers = [frame for frame in frames if frame.get_srcSystem() == 7]
        self.assertGreaterEqual(len(answers), len(self.copter.file) // 80)

    def test_4_a_log_is_complete_although_it_comes_faster_than_it_is_read(self):
        self.copter.log = os.urandom(200_000)
        began = time.monotonic()
        log, asked = self.station.log(len(self.copter.log))
        print(f"log of {len(log)} bytes in {time.monotonic() - began:.1f} s with {asked} requests")
        self.assertEqual(log, self.copter.log)
        # What does not fit waits at the autopilot. A machine that is busy may lose a few datagrams between the ends.
        self.assertLessEqual(asked, 5)

    def test_5_mavproxy_counts_no_loss(self):
        with tempfile.TemporaryDirectory() as directory:
            said = self.mavproxy(pathlib.Path(directory))
        counted = [int(lost) for lost in re.findall(r"(\d+) lost", said)]
        self.assertTrue(counted, said)
        self.assertEqual(counted[-1], 0, said)

    def mavproxy(self, directory):
        process, said = start_mavproxy(f"tcp:127.0.0.1:{self.ground_port}", "link,param", directory, "copter")

        def tell(line, part):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            eventually(f"{part!r} in {said()[-2000:]}", lambda: part in said())

        try:
            eventually("a vehicle that MAVProxy sees", lambda: "Detected vehicle" in said())
            tell("param fetch", f"Received {PARAMETERS} parameters")
            tell("link", " lost")
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
        return said()

    def air(self):
        """Datagrams and bytes that the vehicle's end has sent."""
        status = json.loads(self.quiver.run("edge", "status", "-d", "edge-1-data", "--json"))
        return status["mavlink"]["carriers"][0]["sent"]

    def passed(self, kind):
        """Messages of a kind in the flight logs of the vehicle's end so far."""
        messages = []
        for path in sorted(self.logs.glob("*.tlog")):
            log = mavutil.mavlink_connection(str(path), dialect="common")
            while (message := log.recv_match(type=kind)) is not None:
                messages.append(message)
            log.close()
        return messages


class Logged(Quiver):
    """The same, with flight logs at the vehicle's end."""

    def __init__(self, *ends, logs):
        self.logs = logs
        super().__init__(*ends)

    def bridge(self, name, flags):
        super().bridge(name, [*flags, "--mavlink-log", str(self.logs)])


@only_quiver
class FlightLogs(unittest.TestCase):
    """Flight logs as pymavlink reads them, of an end that is killed."""

    def test_logs_are_read_by_pymavlink_after_kill_9_and_with_a_torn_end(self):
        ports = free_port(), free_port()
        copter = Copter(ports[0])
        self.addCleanup(copter.close)
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "flights"
        quiver = Logged(Direct(), True, f"tcp:127.0.0.1:{ports[0]}", f"tcpin:127.0.0.1:{ports[1]}", logs=place)
        self.addCleanup(quiver.close)
        station = Station(ports[1])
        self.addCleanup(station.close)
        station.telemetry()
        station.command(m.MAV_CMD_COMPONENT_ARM_DISARM, 1)
        self.security_state(station)
        (tlog,) = place.glob("*.tlog")
        eventually("the last of them", lambda: "COMMAND_ACK" in {message.get_type() for message in self.read(tlog)})
        quiver.processes[-1].stop()
        self.assertEqual(tlog.stat().st_mode & 0o777, 0o600)
        whole = self.read(tlog)
        kinds = {message.get_type() for message in whole}
        self.assertTrue({"ATTITUDE", "HEARTBEAT", "COMMAND_LONG", "COMMAND_ACK"} <= kinds, kinds)
        self.assertNotIn("BAD_DATA", kinds)
        # By the wall clock, and from which side: the group is link 1.
        self.assertTrue(all(abs(message._timestamp - time.time()) < 600 for message in whole))
        links = {message.get_type(): message._link for message in whole}
        self.assertEqual((links["ATTITUDE"], links["COMMAND_LONG"]), (0, 1))
        # A crash of the machine may leave a part of the last record.
        torn = tlog.with_name("torn.tlog")
        torn.write_bytes(tlog.read_bytes()[:-5])
        left = self.read(torn)
        self.assertEqual([message.get_msgbuf() for message in left], [message.get_msgbuf() for message in whole[:-1]])
        lines = [json.loads(line) for file in place.glob("*.dropped.jsonl") for line in file.read_text().splitlines()]
        for line in lines:
            self.assertIn(line["way"], ("to group", "from group", "local"))
            self.assertTrue(line["reason"] and line["time_us"] > 0, line)

    def security_state(self, station):
        """The ground station is told the state of its end, under the end's component."""
        values = {}
        while values.get("QV_MEMBERS") != 2 or "QV_D_ALL" not in values or "QV_OPEN" not in values:
            message = station.link.recv_match(type="NAMED_VALUE_INT", blocking=True, timeout=60)
            self.assertIsNotNone(message, values)
            self.assertEqual((message.get_srcSystem(), message.get_srcComponent()), (255, 240))
            values[message.name] = message.value
            station.beat()
        self.assertEqual((values["QV_OPEN"], values["QV_GONE"]), (1, 0), values)
        self.assertGreater(values["QV_LEFT"], 0)
        # As programs of pymavlink look them up.
        self.assertEqual(station.link.sysid_state[255].messages["NAMED_VALUE_INT[QV_OPEN]"].value, 1)

    @staticmethod
    def read(path):
        log = mavutil.mavlink_connection(str(path), dialect="common")
        messages = []
        while (message := log.recv_match()) is not None:
            messages.append(message)
        log.close()
        return messages


if __name__ == "__main__":
    unittest.main(verbosity=2)
