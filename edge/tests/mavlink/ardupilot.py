"""A vehicle of pymavlink that answers as ArduPilot's simulator does: on TCP, as fast as the line takes it, with many
parameters, missions in both directions, files by FTP, logs, and 50 Hz of attitude."""

import os
import select
import struct

# Without it pymavlink sends MAVLink 1.
os.environ["MAVLINK20"] = "1"

from pymavlink import mavftp_op as ftp
from pymavlink.dialects.v20 import common as m
from vehicle import Vehicle

PARAMETERS = 900
# What of a burst is sent before the next message is looked at.
AT_ONCE = 20
# Packets of a burst of FTP, as ArduPilot ends them after a while.
BURST = 100
FILE = "@PARAM/param.pck"
HEADER = struct.Struct("<HBBBBBxI")
END_OF_FILE = 6
NOT_FOUND = 10


class Copter(Vehicle):
    """Listens on a port of TCP. Bulk goes out as fast as the line takes it, between telemetry."""

    def __init__(self, port, system=7):
        self.bulk, self.file, self.log = [], bytes(), bytes()
        super().__init__(f"tcpin:127.0.0.1:{port}", system=system, every=0.02)
        self.parameters = {f"TEST_{number:03}": float(number) for number in range(PARAMETERS)}
        self.link.write = self.write

    def write(self, data):
        """Waits while the line is full, as an autopilot looks at the room in its buffer; pymavlink's own drops."""
        left = memoryview(bytes(data))
        while left and (line := self.link.port) is not None and self.running:
            try:
                left = left[line.send(left) :]
            except BlockingIOError:
                select.select([], [line], [], 0.5)
            except OSError:
                return

    def report(self, now):
        super().report(now)
        self.proceed()

    def answer(self, message):
        super().answer(message)
        self.proceed()

    def proceed(self):
        for _ in range(min(AT_ONCE, len(self.bulk))):
            self.bulk.pop(0)()

    def on_param_request_list(self, _message):
        self.bulk += [lambda name=name: self.send_parameter(name) for name in self.parameters]

    def on_mission_request_list(self, message):
        asker = message.get_srcSystem(), message.get_srcComponent()
        self.link.mav.mission_count_send(*asker, len(self.mission))

    def on_mission_request_int(self, message):
        if message.seq >= len(self.mission):
            return
        command, x, y, z = self.mission[message.seq]
        asker = message.get_srcSystem(), message.get_srcComponent()
        frame = m.MAV_FRAME_GLOBAL_RELATIVE_ALT_INT
        self.link.mav.mission_item_int_send(*asker, message.seq, frame, command, 0, 1, 0, 0, 0, 0, x, y, z)

    def on_log_request_list(self, _message):
        self.link.mav.log_entry_send(1, 1, 1, 1_700_000_000, len(self.log))

    def on_log_request_data(self, message):
        end = min(message.ofs + message.count, len(self.log))
        # All at once: this is what fills every queue on the way.
        for offset in range(message.ofs, end, 90):
            part = self.log[offset : min(offset + 90, end)]
            self.link.mav.log_data_send(1, offset, len(part), part.ljust(90, b"\0"))

    def on_file_transfer_protocol(self, message):
        payload = bytes(message.payload)
        seq, session, opcode, size, _, _, offset = HEADER.unpack_from(payload)
        asker = message.get_srcSystem(), message.get_srcComponent()

        def reply(number, kind, data=b"", offset=0, is_last=0):
            head = HEADER.pack((seq + 1 + number) % 65536, session, kind, len(data), opcode, is_last, offset)
            self.link.mav.file_transfer_protocol_send(0, *asker, (head + data).ljust(251, b"\0"))

        if opcode == ftp.OP_OpenFileRO:
            name = payload[HEADER.size : HEADER.size + size].decode()
            if name == FILE:
                return reply(0, ftp.OP_Ack, len(self.file).to_bytes(4, "little"))
            return reply(0, ftp.OP_Nack, bytes([NOT_FOUND]))
        if opcode in (ftp.OP_TerminateSession, ftp.OP_ResetSessions):
            self.bulk.clear()
            return reply(0, ftp.OP_Ack)
        if opcode == ftp.OP_ReadFile:
            data = self.file[offset : offset + size]
            kind, data = (ftp.OP_Ack, data) if data else (ftp.OP_Nack, bytes([END_OF_FILE]))
            return reply(0, kind, data, offset)
        if opcode == ftp.OP_BurstReadFile:
            for number in range(BURST):
                at = offset + number * size
                data = self.file[at : at + size]
                if not data:
                    end = number, ftp.OP_Nack, bytes([END_OF_FILE]), at
                    self.bulk.append(lambda end=end: reply(*end))
                    return None
                part = number, ftp.OP_Ack, data, at, int(number == BURST - 1)
                self.bulk.append(lambda part=part: reply(*part))
            return None
        return reply(0, ftp.OP_Nack, bytes([7]))
