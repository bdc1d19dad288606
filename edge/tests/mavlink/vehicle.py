"""A vehicle of pymavlink: heartbeats, telemetry, parameters, missions, commands, as an autopilot has them."""

import math
import os
import sys
import threading
import time

# Without it pymavlink sends MAVLink 1.
os.environ["MAVLINK20"] = "1"

from pymavlink import mavutil
from pymavlink.dialects.v20 import common as m

MARK = "seen by nobody on the air"


class Vehicle(threading.Thread):
    """Sends to ``endpoint`` until it is closed: three frames of telemetry ``every`` so many seconds, and
    three each second. With ``key`` by MAVLink's signatures. Remembers what it was told."""

    def __init__(self, endpoint, system=7, every=0.05, key=None):
        super().__init__(daemon=True)
        self.every = every
        self.link = mavutil.mavlink_connection(endpoint, source_system=system, source_component=1, baud=57600)
        if key is not None:
            # It signs what it sends and takes nothing that is not signed.
            self.link.setup_signing(key, sign_outgoing=True)
        self.lock = threading.Lock()
        self.running = True
        self.armed = False
        self.commands, self.heard = [], set()
        self.parameters = {"MPC_XY_VEL_MAX": 12.0, "RTL_RETURN_ALT": 60.0}
        self.mission, self.incoming, self.asked = [], None, 0.0
        self.start()

    def close(self):
        self.running = False
        self.join()
        self.link.close()

    def run(self):
        began = time.monotonic()
        beat = telemetry = 0.0
        while self.running:
            now = time.monotonic() - began
            if now >= beat:
                beat = now + 1.0
                self.beat()
            if now >= telemetry:
                telemetry = now + self.every
                self.report(now)
            message = self.link.recv_match(blocking=True, timeout=self.every / 2)
            if message is not None:
                self.answer(message)
            # A request for an item that got lost is repeated.
            if self.incoming is not None and time.monotonic() > self.asked + 0.25:
                self.ask_for_item()

    def beat(self):
        armed = m.MAV_MODE_FLAG_SAFETY_ARMED if self.armed else 0
        mode = armed | m.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | m.MAV_MODE_FLAG_AUTO_ENABLED
        kind, autopilot = m.MAV_TYPE_QUADROTOR, m.MAV_AUTOPILOT_PX4
        self.link.mav.heartbeat_send(kind, autopilot, mode, 4 << 16, m.MAV_STATE_ACTIVE)
        self.link.mav.statustext_send(m.MAV_SEVERITY_INFO, MARK.encode())
        self.link.mav.home_position_send(473977418, 85455939, 488000, 0, 0, 0, [1, 0, 0, 0], 0, 0, 0)

    def report(self, now):
        at = int(now * 1000)
        self.link.mav.attitude_send(at, 0.1 * math.sin(now), 0.1 * math.cos(now), 1.0, 0, 0, 0)
        self.link.mav.global_position_int_send(at, 473977418, 85455939, 488000, 12000, 0, 0, 0, 9000)
        self.link.mav.gps_raw_int_send(at * 1000, 3, 473977418, 85455939, 488000, 80, 80, 0, 9000, 12)

    def answer(self, message):
        kind = message.get_type()
        with self.lock:
            self.heard.add((kind, message.get_srcSystem()))
        answer = getattr(self, f"on_{kind.lower()}", None)
        if answer is not None and getattr(message, "target_system", 0) in (0, self.link.source_system):
            answer(message)

    def on_command_long(self, message):
        with self.lock:
            self.commands.append((message.command, message.param1, message.param2))
        result = m.MAV_RESULT_ACCEPTED
        if message.command == m.MAV_CMD_COMPONENT_ARM_DISARM:
            self.armed = message.param1 == 1
        elif message.command == m.MAV_CMD_REQUEST_MESSAGE:
            result = self.send_requested(int(message.param1))
        elif message.command == m.MAV_CMD_SET_MESSAGE_INTERVAL:
            result = m.MAV_RESULT_ACCEPTED
        elif message.command not in (m.MAV_CMD_NAV_RETURN_TO_LAUNCH, m.MAV_CMD_DO_SET_MODE):
            result = m.MAV_RESULT_UNSUPPORTED
        asker = message.get_srcSystem(), message.get_srcComponent()
        self.link.mav.command_ack_send(message.command, result, 0, 0, *asker)
        if message.command == m.MAV_CMD_COMPONENT_ARM_DISARM:
            self.beat()

    def send_requested(self, number):
        if number != m.MAVLINK_MSG_ID_AUTOPILOT_VERSION:
            return m.MAV_RESULT_UNSUPPORTED
        abilities = m.MAV_PROTOCOL_CAPABILITY_MISSION_INT | m.MAV_PROTOCOL_CAPABILITY_MAVLINK2
        abilities |= m.MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
        none = bytes(8)
        self.link.mav.autopilot_version_send(abilities, 0x010F0000, 0, 0, 0, none, none, none, 0, 0, 1)
        return m.MAV_RESULT_ACCEPTED

    def on_param_request_list(self, _message):
        for name in self.parameters:
            self.send_parameter(name)

    def on_param_request_read(self, message):
        name = message.param_id if message.param_index < 0 else list(self.parameters)[message.param_index]
        if name in self.parameters:
            self.send_parameter(name)

    def on_param_set(self, message):
        if message.param_id in self.parameters:
            self.parameters[message.param_id] = message.param_value
            self.send_parameter(message.param_id)

    def send_parameter(self, name):
        names = list(self.parameters)
        value = self.parameters[name]
        kind, index = m.MAV_PARAM_TYPE_REAL32, names.index(name)
        self.link.mav.param_value_send(name.encode(), value, kind, len(names), index)

    def on_mission_count(self, message):
        self.incoming = (message.get_srcSystem(), message.get_srcComponent(), message.count, [])
        self.ask_for_item()

    def ask_for_item(self):
        system, component, _count, items = self.incoming
        self.asked = time.monotonic()
        self.link.mav.mission_request_int_send(system, component, len(items))

    def on_mission_item_int(self, message):
        if self.incoming is None:
            # The last one again: its acknowledgement got lost.
            if self.mission and message.seq == len(self.mission) - 1:
                self.acknowledge_mission(message)
            return
        _system, _component, count, items = self.incoming
        if message.seq != len(items):
            return
        items.append((message.command, message.x, message.y, message.z))
        if len(items) < count:
            self.ask_for_item()
            return
        self.mission, self.incoming = items, None
        self.acknowledge_mission(message)

    def acknowledge_mission(self, message):
        asker = message.get_srcSystem(), message.get_srcComponent()
        self.link.mav.mission_ack_send(*asker, m.MAV_MISSION_ACCEPTED)

    def on_mission_clear_all(self, message):
        self.mission = []
        self.acknowledge_mission(message)


if __name__ == "__main__":
    # `vehicle.py ENDPOINT SYSTEM`: until it is ended.
    Vehicle(sys.argv[1], system=int(sys.argv[2])).join()
