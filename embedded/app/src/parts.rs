//! Optional parts of a node: what a board does beside enrolling, keying and messages.
//!
//! A part has a file or folder here, and two lines below: its module, and its place in the list of
//! [`image_parts`], each for images with its feature alone. The node calls all parts by [`BoardPart`] and knows
//! none of them. Parts do no I/O: what takes the machine or the flash they ask the node for, by [`PartRequest`].

#[allow(dead_code, reason = "an image uses of the seam what its parts use")]
mod board_part;
#[cfg(feature = "broadcasts")]
mod broadcasts;
#[cfg(feature = "datagrams")]
mod datagrams;
#[cfg(feature = "envelopes")]
mod envelopes;
#[cfg(feature = "quorum")]
mod quorum;

pub(crate) use self::board_part::{
    BesideCommand, BoardPart, CommandAnswer, NoPart, PartContext, PartRequest,
};

/// The parts of this image. A part with a machine beside the edge comes first: see [`BoardPart::Beside`].
pub(crate) fn image_parts() -> impl BoardPart {
    let parts = NoPart;
    #[cfg(feature = "envelopes")]
    let parts = (envelopes::EnvelopePart::new(), parts);
    #[cfg(feature = "datagrams")]
    let parts = (parts, datagrams::DatagramPart::new());
    #[cfg(feature = "broadcasts")]
    let parts = (parts, broadcasts::BroadcastPart::new());
    #[cfg(feature = "quorum")]
    let parts = (parts, quorum::QuorumPart);
    parts
}

/// Returns true if a datagram for everybody on a radio is one that this image takes. `from_gateway` says that the
/// gateway sent it. Drivers ask this, so that what nobody takes fills no queue.
#[must_use]
pub fn is_heard(datagram: &[u8], from_gateway: bool) -> bool {
    fn of<P: BoardPart>(_: fn() -> P, datagram: &[u8], from_gateway: bool) -> bool {
        P::is_heard(datagram, from_gateway)
    }
    of(image_parts, datagram, from_gateway)
}
