#!/usr/bin/env python3
"""Writes src/layout/table.rs: what of each known message is needed to route it.

    python3 -m venv venv && venv/bin/pip install -r deploy/mavlink/requirements.txt
    venv/bin/python proto/mavlink/tests/vectors/layouts.py > proto/mavlink/src/layout/table.rs

The messages are those of the dialect `all`, MAVLink 2. Offsets are into the payload as it travels: fields ordered
by size, extensions last.
"""
import re
from importlib.metadata import version

from pymavlink.dialects.v20 import all as dialect

SIZES = {"b": 1, "B": 1, "c": 1, "s": 1, "h": 2, "H": 2, "i": 4, "I": 4, "f": 4, "q": 8, "Q": 8, "d": 8}
NONE = 255


def offsets(message):
    """Name of a field -> where it begins."""
    where, found = 0, {}
    tokens = re.findall(r"(\d*)([a-zA-Z])", message.unpacker.format)
    assert len(tokens) == len(message.ordered_fieldnames), message.msgname
    for name, (count, kind) in zip(message.ordered_fieldnames, tokens):
        found[name] = where
        where += int(count or 1) * SIZES[kind]
    assert where <= 255, message.msgname
    return found


rows = []
for number, message in sorted(dialect.mavlink_map.items()):
    at = offsets(message)
    rows.append((number, message.crc_extra, at.get("target_system", NONE), at.get("target_component", NONE)))

print(f"""//! Check sums' seeds and where the target stands, of {len(rows)} messages: made by `tests/vectors/layouts.py` from
//! pymavlink {version("pymavlink")}, dialect `all`. Not written by hand.

/// Number, `CRC_EXTRA`, offset of `target_system`, offset of `target_component` (255: has none), by number.
#[rustfmt::skip]
pub(super) const LAYOUTS: [(u32, u8, u8, u8); {len(rows)}] = [""")
line = "   "
for row in rows:
    item = " ({}, {}, {}, {}),".format(*row)
    if len(line) + len(item) > 110:
        print(line)
        line = "   "
    line += item
print(line)
print("];")
