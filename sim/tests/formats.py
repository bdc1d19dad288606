"""Judges by pymavlink and tshark what `sim` reads and writes: `formats.py SIM`. See .ci/formats."""

import pathlib
import struct
import subprocess
import sys
import tempfile

from pymavlink import mavutil
from pymavlink.dialects.v20 import common

SIM = sys.argv[1]


def sim(*words):
    # What is printed is not run, so that no suite is chosen.
    how = [] if "--print" in words else ["--suite", "toy", "--no-results"]
    words = [SIM, "scenario", *how, *map(str, words)]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=600).stdout


def messages(log):
    """Messages of a telemetry log, as pymavlink reads them."""
    reader = mavutil.mavlink_connection(str(log))
    found = []
    while (message := reader.recv_match()) is not None:
        found.append(message)
    return found


def write_log(path):
    """A flight of two vehicles and a ground station, each frame behind its time as pymavlink has it."""
    with open(path, "wb") as out:
        for second in range(30):
            for system in (1, 2, 255):
                link = common.MAVLink(None, srcSystem=system, srcComponent=1)
                link.seq = second
                kind = common.MAV_TYPE_GCS if system == 255 else common.MAV_TYPE_QUADROTOR
                frames = [link.heartbeat_encode(kind, 0, 0, 0, 0)]
                if system != 255:
                    east = 85_000_000 + 1000 * second * system
                    frames.append(link.global_position_int_encode(1000 * second, 471_000_000, east, 0, 0, 0, 0, 0, 0))
                for frame in frames:
                    out.write(struct.pack(">Q", 1_700_000_000_000_000 + 1_000_000 * second) + frame.pack(link))


def tshark(capture, *words):
    words = ["tshark", "-r", str(capture), *words]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=600).stdout.splitlines()


def live(capture):
    """The datagrams of a live run, as UDP."""
    words = [SIM, "run", "-n", "6", "--messages", "0", "--mavlink", "--no-restart-leader", "--no-results", "--pcapng", str(capture)]
    subprocess.run(words, check=True, capture_output=True, timeout=600)
    fields = ["frame.interface_name", "ip.src", "ip.dst", "udp.srcport", "ip.checksum.status", "frame.comment"]
    check = ["-o", "ip.check_checksum:TRUE"]
    rows = [line.split("\t") for line in tshark(capture, *check, "-T", "fields", *(word for one in fields for word in ("-e", one)))]
    # 18 telemetry datagrams in each of ten seconds of each vehicle: six, of which one left and another joined.
    assert len(rows) > 6 * 18 * 10, len(rows)
    assert {row[0] for row in rows} == {"datagrams"} and {row[4] for row in rows} == {"1"}, rows[:3]
    vehicles = {row[1] for row in rows} - {"10.0.0.1"}
    assert len(vehicles) == 6 and all(one.startswith("10.0.1.") for one in vehicles), vehicles
    assert all("10.0.0.1" in row[1:3] and row[3] == "14800" for row in rows), "the station is at one end"
    lost = [row for row in rows if "drop: " in row[5]]
    assert 0.1 < len(lost) / len(rows) < 0.3, (len(lost), len(rows))
    said = " ".join(row[5] for row in rows)
    assert said.count("epoch ") == 2 and "is evicted" in said, said[:400]
    assert not tshark(capture, *check, "-Y", "_ws.malformed || ip.checksum.status == 0"), "well formed"


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_log(folder / "flight.tlog")
        assert "members = 2" in sim("--from-tlog", folder / "flight.tlog", "--print")
        places = folder / "flight.movements"
        capture = folder / "run.pcapng"
        sim("--from-tlog", folder / "flight.tlog", "--write-places", places, "--pcapng", capture, "--tlogs", folder / "logs")
        assert len(places.read_text().splitlines()) == 2
        for system, vehicle in ((1, "edge-0"), (2, "edge-1")):
            frames = messages(folder / "logs" / f"{vehicle}.tlog")
            assert len(frames) > 20, (vehicle, len(frames))
            assert all(frame.get_srcSystem() == system for frame in frames)
        fields = tshark(capture, "-T", "fields", "-e", "frame.interface_name", "-e", "wpan.src16", "-e", "frame.comment")
        assert {"kgc-1", "leader-0", "edge-0", "edge-1"} <= {line.split("\t")[0] for line in fields}, fields[:5]
        assert any("epoch " in line for line in fields)
        of_leader = tshark(capture, "-Y", "wpan.src16 == 0x0002")
        assert 0 < len(of_leader) < len(fields)
        # Telemetry of both vehicles and the leader's heartbeat, to all.
        senders = tshark(capture, "-Y", 'frame.comment == "datagram" && wpan.dst16 == 0xffff', "-T", "fields", "-e", "wpan.src16")
        assert {"0x0002", "0x0003", "0x0004"} <= set(senders), set(senders)
        announced = tshark(capture, "-Y", 'frame.comment contains "announces a signing key"')
        assert len(announced) >= 3, announced
        live(folder / "live.pcapng")
    print("tshark and pymavlink read what sim writes, and sim reads what pymavlink writes")


main()
