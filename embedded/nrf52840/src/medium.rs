//! The link's two media as one: by radio if the board was given a radio address, over the line otherwise.

use embassy_time::{Duration, with_timeout};
use quiver_firmware::{DatagramTransport, FrameErrors, RadioAddress};
use quiver_link::{BROADCAST, MAX_RADIO_DATAGRAM, RadioFrame, is_of_group};

use crate::bridge::GATEWAY;
use crate::radio;

/// Time that a frame may wait for the channel before it counts as lost; its backoffs take 60 ms at most.
const PATIENCE: Duration = Duration::from_millis(500);

/// Reason why a datagram was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediumError<E> {
    /// Error of the line.
    #[error("line: {0:?}")]
    Line(E),
    /// The radio's queue stayed full.
    #[error("the radio's channel is never clear")]
    Busy,
    /// More bytes than a frame holds.
    #[error("too long for the radio")]
    TooLong,
}

/// A line, and the radio beside it.
pub struct BoardMedium<Line> {
    line: Line,
    address: Option<RadioAddress>,
    sequence: u8,
}

impl<Line: DatagramTransport> BoardMedium<Line> {
    /// Makes the medium, which sends over the line until an address is set.
    pub const fn new(line: Line) -> Self {
        Self { line, address: None, sequence: 0 }
    }

    async fn by_radio(
        &mut self,
        address: RadioAddress,
        destination: u16,
        datagram: &[u8],
    ) -> Result<(), MediumError<Line::Error>> {
        let frame = RadioFrame {
            sequence: self.sequence,
            network: address.pan,
            destination,
            source: address.short,
            datagram,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = frame.encode().map_err(|_| MediumError::TooLong)?;
        let frame = radio::PhyFrame::new(&bytes).ok_or(MediumError::TooLong)?;
        with_timeout(PATIENCE, radio::send(frame)).await.map_err(|_| MediumError::Busy)
    }
}

impl<Line: DatagramTransport> DatagramTransport for BoardMedium<Line> {
    type Error = MediumError<Line::Error>;

    async fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        if self.address.is_none() {
            return self.line.receive(buffer).await.map_err(MediumError::Line);
        }
        let frame = radio::receive().await;
        // The radio's task has looked at network and destination. The group's own come from any of its members.
        let datagram = RadioFrame::parse(frame.bytes())
            .ok()
            .filter(|frame| frame.source == GATEWAY || is_of_group(frame.datagram))
            .map(|frame| frame.datagram);
        let taken = datagram.and_then(|datagram| {
            buffer.get_mut(..datagram.len())?.copy_from_slice(datagram);
            Some(datagram.len())
        });
        Ok(taken)
    }

    async fn send(&mut self, datagram: &[u8]) -> Result<(), Self::Error> {
        match self.address {
            Some(address) => self.by_radio(address, GATEWAY, datagram).await,
            None => self.line.send(datagram).await.map_err(MediumError::Line),
        }
    }

    async fn broadcast(&mut self, datagram: &[u8]) -> Result<(), Self::Error> {
        match self.address {
            Some(address) => self.by_radio(address, BROADCAST, datagram).await,
            None => self.line.broadcast(datagram).await.map_err(MediumError::Line),
        }
    }

    fn mtu(&self) -> usize {
        if self.address.is_some() { MAX_RADIO_DATAGRAM } else { self.line.mtu() }
    }

    fn set_address(&mut self, address: Option<RadioAddress>) {
        if let Some(address) = address {
            radio::listen(address.pan, address.short);
        }
        self.address = address;
    }

    fn frame_errors(&self) -> FrameErrors {
        let mut faults = self.line.frame_errors();
        faults.bad_crc = faults.bad_crc.saturating_add(radio::counters().bad_crc);
        faults
    }
}
