"""A proxy in place of the services: MAVLink from the vehicle's end to the ground station's and back, without Quiver. To
tell whether a failure is of the programs and their vehicle, or of what is between them."""

import select
import socket
import threading


class Plain(threading.Thread):
    """Listens on ``vehicle`` for a vehicle, sends to ``ground`` where a ground station listens."""

    def __init__(self, vehicle, ground):
        super().__init__(daemon=True)
        self.to_vehicle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.to_vehicle.bind(("127.0.0.1", vehicle))
        self.to_ground = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.to_ground.connect(("127.0.0.1", ground))
        self.peer, self.running = None, True
        self.start()

    def run(self):
        while self.running:
            ready, _, _ = select.select([self.to_vehicle, self.to_ground], [], [], 0.1)
            try:
                if self.to_vehicle in ready:
                    frame, self.peer = self.to_vehicle.recvfrom(65535)
                    self.to_ground.send(frame)
                if self.to_ground in ready:
                    frame = self.to_ground.recv(65535)
                    if self.peer is not None:
                        self.to_vehicle.sendto(frame, self.peer)
            except ConnectionError:
                # Nobody listens yet.
                pass

    def close(self):
        self.running = False
        self.join()
        self.to_vehicle.close()
        self.to_ground.close()
