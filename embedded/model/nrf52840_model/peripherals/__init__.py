"""The peripherals of the nRF52840 that the firmware uses, one module each."""
