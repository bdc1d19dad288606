"""`python -m nrf52840_model`."""

import sys

from .cli import main

sys.exit(main())
