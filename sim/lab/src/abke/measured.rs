//! The measurements of runs of one policy.

use super::exchange_setup::{ExchangeSetup, Lengths};
use super::plan::PolicySize;
use super::published::ExchangeSide;
use super::step::ExchangeStep;
use crate::Result;
use crate::measure::{Effort, Timing, repeat_on};

/// Bits per second of the link that the publication names.
const LINK: f64 = 200e6;
/// Keys of the publication's batch.
pub(super) const BATCH: usize = 10;

/// Measurements of runs of one policy.
#[derive(Clone, Debug)]
pub(super) struct MeasuredRuns {
    pub(super) size: PolicySize,
    timings: Vec<Timing>,
    /// Decoding and verifying a key, as one of a batch of [`BATCH`].
    pub(super) batched: f64,
    pub(super) lengths: Lengths,
}

impl MeasuredRuns {
    pub(super) fn take(exchange_setup: &ExchangeSetup, effort: Effort) -> Result<Self> {
        let (mut rng, mut passes) = (exchange_setup.rng(), Vec::new());
        let whole = repeat_on(
            effort,
            &mut passes,
            |_| Ok(()),
            |passes, ()| {
                passes.push(exchange_setup.pass(&mut rng)?);
                Ok::<(), crate::LabError>(())
            },
        )?;
        // Warm-up runs are dropped here as well.
        let counted = passes.split_off(passes.len().saturating_sub(whole.samples));
        let timing =
            |step: ExchangeStep| Timing::of(counted.iter().map(|pass| pass.seconds[step as usize]).collect());
        let hellos = exchange_setup.hellos(BATCH)?;
        #[expect(clippy::cast_precision_loss, reason = "ten")]
        let batched = exchange_setup.verify(&hellos, effort)?.median / BATCH as f64;
        let lengths = counted.last().map_or_else(Lengths::default, |pass| pass.lengths);
        Ok(Self {
            size: exchange_setup.size,
            timings: ExchangeStep::ALL.map(timing).into(),
            batched,
            lengths,
        })
    }

    pub(super) fn timing(&self, step: ExchangeStep) -> Timing {
        self.timings[step as usize]
    }

    pub(super) fn seconds(&self, step: ExchangeStep) -> f64 {
        self.timing(step).median
    }

    /// All that a side computes during a run.
    pub(super) fn online(&self, side: ExchangeSide) -> f64 {
        self.sum(|step| step.side() == side && !step.beforehand())
    }

    /// All that a side can compute before it.
    pub(super) fn beforehand(&self, side: ExchangeSide) -> f64 {
        self.sum(|step| step.side() == side && step.beforehand())
    }

    /// The server's time for each of [`BATCH`] clients whose keys it verifies at once.
    pub(super) fn server_batched(&self) -> f64 {
        self.online(ExchangeSide::Server) - self.seconds(ExchangeStep::Verify) + self.batched
    }

    fn sum(&self, of: impl Fn(ExchangeStep) -> bool) -> f64 {
        ExchangeStep::ALL.into_iter().filter(|step| of(*step)).map(|step| self.seconds(step)).sum()
    }

    /// Bytes that the client sends.
    pub(super) const fn up(&self) -> usize {
        self.lengths.hello + self.lengths.commitment + self.lengths.opening
    }

    /// Bytes that the server sends.
    pub(super) const fn down(&self) -> usize {
        self.lengths.offer + self.lengths.tables + self.lengths.seeds + self.lengths.confirmation
    }

    /// Time of all bytes over the link.
    pub(super) fn transfer(&self) -> f64 {
        over_the_link(self.up() + self.down())
    }

    /// A run in which one thing happens after the other.
    pub(super) fn in_sequence(&self) -> f64 {
        self.online(ExchangeSide::Server) + self.online(ExchangeSide::Client) + self.transfer()
    }

    /// A run in which the circuit is garbled, sent and evaluated piece by piece at the same time.
    pub(super) fn streamed(&self) -> f64 {
        let parts = [
            self.seconds(ExchangeStep::Garble),
            over_the_link(self.lengths.tables),
            self.seconds(ExchangeStep::Evaluate),
        ];
        self.in_sequence() - parts.iter().sum::<f64>() + parts.into_iter().fold(0.0, f64::max)
    }
}

/// Seconds that so many bytes take over the publication's link.
#[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^52")]
pub(super) fn over_the_link(bytes: usize) -> f64 {
    8.0 * bytes as f64 / LINK
}
