#!/usr/bin/env python3
"""Writes vectors/messages.txt: numbers and names of the messages of the standard's definitions.

    python3 -m venv venv && venv/bin/pip install pymavlink==2.4.50
    git clone https://github.com/mavlink/mavlink
    venv/bin/python proto/mavlink/tests/vectors/messages.py mavlink > proto/mavlink/tests/vectors/messages.txt
"""
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml
from importlib.metadata import version

from pymavlink.dialects.v20 import all as dialect

clone = pathlib.Path(sys.argv[1])
commit = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], capture_output=True, check=True, text=True).stdout.strip()
names = {number: message.msgname for number, message in dialect.mavlink_map.items()}
for file in ("minimal", "standard", "common", "development"):
    for message in xml.parse(clone / f"message_definitions/v1.0/{file}.xml").getroot().iter("message"):
        names.setdefault(int(message.get("id")), message.get("name"))
print(f"# Made by vectors/messages.py: pymavlink {version('pymavlink')}, dialect `all`, and what more the definitions of mavlink/mavlink have")
print(f"# (minimal, standard, common, development) at {commit}. Number and name.")
for number, name in sorted(names.items()):
    print(number, name)
