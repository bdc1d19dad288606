//! UARTs: received by interrupt into a buffer, sent byte by byte.
//!
//! When the buffer is full, reception pauses, and QEMU holds the next byte back: nothing is lost, and nothing
//! grows.

use core::convert::Infallible;
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::pipe::Pipe;
use embassy_sync::waitqueue::AtomicWaker;
use embedded_io_async::{ErrorType, Read, Write};
use tock_registers::interfaces::{Readable, Writeable};

use crate::machine::{self, Interrupt, UartRegisters};

const TRANSMIT_FULL: u32 = 1;
const RECEIVE_FULL: u32 = 1 << 1;
const ENABLE: u32 = 0b11;
const ON_SENT: u32 = 1 << 2;
const ON_RECEIVED: u32 = 1 << 3;
const SENT: u32 = 1;
const RECEIVED: u32 = 1 << 1;
/// The least divisor; QEMU does not care how fast the line would be.
const DIVISOR: u32 = 16;
/// Bytes of the buffer.
const BUFFER: usize = 2048;

/// The console.
pub(crate) static CONSOLE: UartState = {
    static RECEIVED: ReceiveBuffer = Pipe::new();
    UartState::new(machine::uart::<1>, &RECEIVED)
};

/// Bytes received that wait to be read. Apart from what does not begin as zeros, which takes flash.
pub(crate) type ReceiveBuffer = Pipe<CriticalSectionRawMutex, BUFFER>;

/// State that a UART shares with its interrupt.
pub(crate) struct UartState {
    registers: fn() -> &'static UartRegisters,
    received: &'static ReceiveBuffer,
    sent: AtomicWaker,
}

impl UartState {
    pub(crate) const fn new(
        registers: fn() -> &'static UartRegisters,
        received: &'static ReceiveBuffer,
    ) -> Self {
        Self { registers, received, sent: AtomicWaker::new() }
    }

    /// Handles either of its interrupts.
    pub(crate) fn interrupted(&self) {
        critical_section::with(|_| {
            let registers = (self.registers)();
            if registers.interrupt.get() & SENT != 0 {
                registers.interrupt.set(SENT);
                registers.control.set(registers.control.get() & !ON_SENT);
                self.sent.wake();
            }
            self.receive(registers);
        });
    }

    /// Takes what has come as long as there is room. Within a critical section.
    fn receive(&self, registers: &UartRegisters) {
        loop {
            // First this, then the data: QEMU delivers the next byte and the interrupt as soon as this one is
            // read.
            registers.interrupt.set(RECEIVED);
            if registers.state.get() & RECEIVE_FULL == 0 {
                registers.control.set(registers.control.get() | ON_RECEIVED);
                return;
            }
            if self.received.is_full() {
                registers.control.set(registers.control.get() & !ON_RECEIVED);
                return;
            }
            let byte = registers.data.get() as u8;
            // There is room, and this is the only writer.
            let _ = self.received.try_write(&[byte]);
        }
    }
}

/// A UART in use.
#[derive(Clone, Copy)]
pub(crate) struct Uart(&'static UartState);

impl Uart {
    /// Switches it on.
    pub(crate) fn start(shared: &'static UartState, interrupts: &[Interrupt]) -> Self {
        let registers = (shared.registers)();
        registers.divisor.set(DIVISOR);
        registers.control.set(ENABLE | ON_RECEIVED);
        machine::enable(interrupts);
        Self(shared)
    }
}

impl ErrorType for Uart {
    type Error = Infallible;
}

impl Read for Uart {
    /// Cancel-safe: a dropped future has taken nothing.
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let len = self.0.received.read(buffer).await;
        // There is room again.
        critical_section::with(|_| self.0.receive((self.0.registers)()));
        Ok(len)
    }
}

impl Write for Uart {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        let registers = (self.0.registers)();
        for (sent, &byte) in bytes.iter().enumerate() {
            if registers.state.get() & TRANSMIT_FULL != 0 {
                if sent > 0 {
                    return Ok(sent);
                }
                self.flush().await?;
            }
            registers.data.set(byte.into());
        }
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        let registers = (self.0.registers)();
        poll_fn(|context| {
            self.0.sent.register(context.waker());
            // The interrupt comes when the buffer empties, and only if it is enabled by then: enable, then
            // check.
            critical_section::with(|_| registers.control.set(registers.control.get() | ON_SENT));
            if registers.state.get() & TRANSMIT_FULL == 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}
