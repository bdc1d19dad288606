//! The steps of a run, with their names in table 10.1.

use super::plan::PolicySize;
use super::published::{ExchangeSide, PublishedAbke};

/// Computation of one side between two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeStep {
    Unlink,
    Hello,
    Verify,
    Offer,
    Garble,
    Decrypt,
    Evaluate,
    Commit,
    Seeds,
    Check,
    Opening,
    Confirm,
}

impl ExchangeStep {
    pub(super) const COUNT: usize = 12;

    /// Steps in the order of a run.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Unlink,
        Self::Hello,
        Self::Verify,
        Self::Offer,
        Self::Garble,
        Self::Decrypt,
        Self::Evaluate,
        Self::Commit,
        Self::Seeds,
        Self::Check,
        Self::Opening,
        Self::Confirm,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Unlink => "unlink",
            Self::Hello => "hello: Diffie-Hellman",
            Self::Verify => "decode, verify",
            Self::Offer => "encrypt, mask labels, sign",
            Self::Garble => "garble",
            Self::Decrypt => "authenticate, decode, decrypt",
            Self::Evaluate => "evaluate",
            Self::Commit => "commit",
            Self::Seeds => "open seeds",
            Self::Check => "check: encrypt and garble again",
            Self::Opening => "check the opening, derive",
            Self::Confirm => "check the confirmation",
        }
    }

    pub(super) const fn side(self) -> ExchangeSide {
        match self {
            Self::Verify | Self::Offer | Self::Garble | Self::Seeds | Self::Opening => ExchangeSide::Server,
            _ => ExchangeSide::Client,
        }
    }

    /// Returns true if it needs nothing of the other side, and can be done long before the run.
    pub(super) const fn beforehand(self) -> bool {
        matches!(self, Self::Unlink)
    }

    /// The operations of table 10.1 that this step does.
    const fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Unlink => &["unlink"],
            Self::Verify => &["verify"],
            Self::Offer => &["encrypt"],
            Self::Garble => &["garble"],
            Self::Decrypt => &["decrypt"],
            Self::Evaluate => &["evaluate"],
            Self::Commit => &["commit"],
            Self::Seeds => &["cointoss"],
            Self::Check => &["check_reencrypt", "check_regarble"],
            Self::Hello | Self::Opening | Self::Confirm => &[],
        }
    }

    /// Published seconds of all of them together.
    pub(super) fn published(self, published: &PublishedAbke, size: PolicySize) -> Option<f64> {
        let figures =
            self.operations().iter().map(|operation| published.seconds(size, self.side(), operation));
        figures.sum::<Option<f64>>().filter(|seconds| *seconds > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_in_the_order_of_their_places() {
        for (place, step) in ExchangeStep::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, place);
        }
    }

    #[test]
    fn every_published_operation_but_the_clients_coin_toss_has_a_step() {
        let published = PublishedAbke::read().unwrap();
        let size = PolicySize { gates: 100_000, attributes: 200 };
        let sum = |side| -> f64 {
            let steps = ExchangeStep::ALL.into_iter().filter(|step| step.side() == side);
            steps.filter_map(|step| step.published(&published, size)).sum()
        };
        // Milliseconds: 857 + 82 + 5 + 0.5 at the server, 78 + 28 + 3 + 0.5 + 42 + 8 at the client.
        assert!((sum(ExchangeSide::Server) - 0.9445).abs() < 1e-9);
        assert!((sum(ExchangeSide::Client) - 0.1595).abs() < 1e-9);
    }
}
