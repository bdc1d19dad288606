//! The link to the gateway, as the node sees it: whole datagrams that may get lost. The group's own travel
//! beside them.

use core::fmt::Debug;

/// Sends and receives datagrams: a byte line with frames, or a radio.
///
/// Nothing is promised: datagrams get lost, come twice or out of order. They do not come changed, as both
/// kinds of link carry a checksum.
#[expect(async_fn_in_trait, reason = "the node runs on one thread and needs no `Send`")]
pub trait DatagramTransport {
    /// Error of the device.
    type Error: Debug;

    /// Waits until something came, and returns the length of the datagram that is now in `buffer`, or `None`
    /// if what came made no whole datagram (so that a line full of garbage does not keep the node from its
    /// other work). A datagram longer than `buffer` is dropped and counted.
    ///
    /// Cancel-safe: a future dropped before it is ready has lost nothing.
    ///
    /// # Errors
    /// Whatever the device reports. The node waits a little and tries again.
    async fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error>;

    /// Sends a datagram of at most [`mtu`](Self::mtu) bytes, or drops it.
    ///
    /// # Errors
    /// Whatever the device reports. The datagram counts as lost.
    async fn send(&mut self, datagram: &[u8]) -> Result<(), Self::Error>;

    /// Sends a datagram to everybody who listens on the medium, or drops it. On a line that is its other end.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    async fn broadcast(&mut self, datagram: &[u8]) -> Result<(), Self::Error> {
        self.send(datagram).await
    }

    /// The longest datagram in bytes: about 1,024 on a line, about 100 by radio.
    fn mtu(&self) -> usize;

    /// Tells the radio its network and address, or that there is none, at the start and after provisioning. A
    /// line has no use for it. [`mtu`](Self::mtu) may give another size afterwards.
    fn set_address(&mut self, _address: Option<RadioAddress>) {}

    /// Frames that were too long, had a wrong checksum or another version since the start.
    fn frame_errors(&self) -> FrameErrors {
        FrameErrors::default()
    }
}

/// Radio address of a board: IEEE 802.15.4 PAN and short address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioAddress {
    /// The network.
    pub pan: u16,
    /// The board within it; the gateway's is 0.
    pub short: u16,
}

/// Counters of received bytes that were no valid frame, since the start. They saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameErrors {
    /// Longer than any frame.
    pub too_long: u32,
    /// Frames with a wrong checksum.
    pub bad_crc: u32,
    /// Frames that are malformed in a way that shows without a checksum.
    pub garbled: u32,
    /// Frames of a version that this firmware does not implement.
    pub wrong_version: u32,
}
