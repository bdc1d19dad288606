//! Erasure code of broadcasts of several frames: how many parity frames, and who can decode.
//!
//! The code is that of boards and gateways ([`quiver_link::erasure`]); here its frames are counted, and drawn
//! as lost, but not made. How many follow from the loss that a sender sees.

use quiver_link::erasure::{
    self, MAX_CODED_MESSAGE, MAX_DATA_PIECES, TARGET, parity_within, recovery_probability,
};

use rand::RngCore;

use crate::radio::{Loss, LossState, Transmission, happens};

/// Coding of a broadcast: in blocks of about as many data frames each, any k frames of a block of k + m
/// suffice for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// Blocks of the message.
    pub blocks: u32,
    /// Parity frames of each block.
    pub parity: u32,
}

impl Coding {
    /// The code of a message of `data` frames with pieces of `piece` bytes, so that 99.99 % of receivers
    /// decode all of it if each frame is lost with probability `loss`. `None` if it takes one frame, or no
    /// parity.
    pub(crate) fn of(data: u32, piece: usize, loss: f64) -> Option<Self> {
        if data < 2 {
            return None;
        }
        let most = MAX_DATA_PIECES.min(MAX_CODED_MESSAGE / piece.max(1)).max(1) as u32;
        let blocks = data.div_ceil(most);
        let parity = parity_within(data.div_ceil(blocks) as usize, loss, (1.0 - TARGET) / f64::from(blocks));
        (parity > 0).then_some(Self { blocks, parity: parity as u32 })
    }

    /// Parity frames of all blocks.
    pub fn frames(self) -> u32 {
        self.blocks.saturating_mul(self.parity)
    }

    /// Returns true if a receiver with this link can decode all blocks of a message of so many data frames.
    pub(crate) fn recovers(self, data: u32, link: &mut LossState, rng: &mut impl RngCore) -> bool {
        // Every block moves the link's state, also after one that is lost.
        self.data(data).filter(|&data| !self.recovers_block(data, link, rng)).count() == 0
    }

    /// Returns true if at least as many frames of a block arrive as it has data frames.
    fn recovers_block(self, data: u32, link: &mut LossState, rng: &mut impl RngCore) -> bool {
        match link.loss() {
            Loss::None => true,
            Loss::Independent { per_frame } => {
                happens(recovery_probability(data as usize, self.parity as usize, per_frame), rng)
            }
            // Every frame moves the chain.
            Loss::GilbertElliott { .. } => {
                (0..data + self.parity).filter(|_| !link.loses(rng)).count() >= data as usize
            }
        }
    }

    /// Data frames of each block of a message of so many.
    fn data(self, data: u32) -> impl Iterator<Item = u32> {
        let (each, longer) = (data / self.blocks, data % self.blocks);
        (0..self.blocks).map(move |block| each + u32::from(block < longer))
    }
}

/// The loss that a sender sees: which of its unicast frames the receivers' MAC acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedLoss(erasure::ObservedLoss);

impl ObservedLoss {
    /// Notes a unicast message whose frames are acknowledged.
    pub fn note(&mut self, sent: &Transmission) {
        let last_failed = u32::from(!sent.delivered);
        let attempts = sent.frames.saturating_add(sent.retransmissions);
        self.0.note(attempts, sent.frames.saturating_sub(last_failed));
    }

    /// Estimated probability that a frame is lost, from 0 to 0.5. An attempt is acknowledged if neither the
    /// frame nor the acknowledgement is lost.
    pub fn estimate(&self) -> f64 {
        let estimate = |share: f64| (1.0 - share.sqrt()).clamp(0.0, erasure::ObservedLoss::MOST);
        self.0.acknowledged().map_or(0.0, estimate)
    }
}
