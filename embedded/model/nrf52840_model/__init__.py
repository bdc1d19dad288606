"""A model of the nRF52840 that runs the unmodified firmware image.

The processor is Unicorn's Cortex-M4; everything around it is written here after the *nRF52840 Product Specification* v1.7
(Nordic Semiconductor, named PS below with its section) and the *ARMv7-M Architecture Reference Manual* (DDI 0403, named
ARM ARM). Register offsets are those of the Rust peripheral access crate `nrf-pac` 0.4, which the firmware uses too.

    schedule     virtual time in cycles of 64 MHz, and what is due when
    cpu          runs instructions, takes and leaves exceptions, sleeps
    scs          system control space: NVIC, SCB, SysTick, DWT
    bus          peripheral registers by address
    peripherals  one small module each, all of one shape (`peripherals.base`)
    flash        NOR semantics in a file that survives a killed process
    host         sockets and the pace of real time
    machine      all of it together, resets
    fleet        the main loop: one chip or several on one clock
    control      orders from a test on standard input: buttons, brown-out, peers
"""
