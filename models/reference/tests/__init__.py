"""Tests of the reference. Python tells of every step of the event loop that takes long; on a busy machine many do."""

import logging

logging.getLogger("asyncio").setLevel(logging.ERROR)
