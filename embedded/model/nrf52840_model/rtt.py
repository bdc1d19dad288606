"""SEGGER RTT up-channel 0, which defmt logs through: read from RAM as a debug probe would.

The control block is 16 bytes of ID, the number of up and down channels, and per channel name, buffer, size, write and read
offset and flags (24 bytes).
"""

import struct
from pathlib import Path

from unicorn import Uc

from .memory import RAM_BASE, RAM_SIZE

ID = b"SEGGER RTT"


class Rtt:
    """Appends what the image logs to a file, raw: `defmt-print -e IMAGE < FILE` decodes it."""

    def __init__(self, uc: Uc, control: int, path: Path):
        self._uc, self._control = uc, control
        self._file = path.open("ab")

    def drain(self) -> None:
        """Takes what is in the channel; does nothing before the image has set it up."""
        block = bytes(self._uc.mem_read(self._control, 48))
        if block[: len(ID)] != ID:
            return
        buffer, size, write, read = struct.unpack_from("<4I", block, 28)
        if not size or max(write, read) >= size or not RAM_BASE <= buffer <= RAM_BASE + RAM_SIZE - size:
            return
        if write != read:
            ring = bytes(self._uc.mem_read(buffer, size))
            self._file.write(ring[read:write] if read < write else ring[read:] + ring[:write])
            self._file.flush()
            self._uc.mem_write(self._control + 40, struct.pack("<I", write))
