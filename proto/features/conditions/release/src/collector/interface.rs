//! Commands, events and timing of the client that collects condition keys.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use quiver_ainq::{KgcId, UnixTime};
use quiver_ibe::{Condition, IdentityKey, ShareFault};
use quiver_machine::{Offence, Peer};
use quiver_message::RefusalReason;

/// Timing of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectTiming {
    /// Time to wait for an answer before another KGC is asked; doubles for each KGC that is silent.
    pub retry: Duration,
    /// The longest such wait.
    pub retry_max: Duration,
    /// Number of KGCs that are asked at a time beyond those that are needed: 0 asks in waves, `u16::MAX` all
    /// at once.
    pub ahead: u16,
}

impl Default for CollectTiming {
    fn default() -> Self {
        Self { retry: Duration::from_secs(2), retry_max: Duration::from_secs(30), ahead: 1 }
    }
}

/// Commands of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectCommand {
    /// Collect the key of a condition. Once more for one that is being collected: the new terms count.
    Collect {
        /// The condition; `None` to learn the newest statement about the master key only.
        condition: Option<Condition>,
        /// Time after which to give up.
        patience: Duration,
        /// True to go on asking, for that time, while the condition is not met.
        wait: bool,
    },
}

/// Answer of a KGC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// A share; nothing is known against it.
    Released,
    /// The time has not come.
    NotYet {
        /// Time at which it will be met.
        at: UnixTime,
        /// The KGC's clock.
        now: UnixTime,
    },
    /// No operator has approved it there.
    NotApproved,
    /// The condition names another drone.
    NotItsDrone,
    /// No policy there allows it.
    NoPolicy,
    /// A share that is wrong.
    Wrong(ShareFault),
    /// A share of this version, which is not that of the newest statement.
    OtherVersion(u32),
    /// A refusal.
    Refused(RefusalReason),
}

impl Verdict {
    /// Returns true if it is a refusal: not a share, right or wrong, and not a condition that time will meet.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::NotYet { .. } | Self::NotApproved | Self::NotItsDrone | Self::NoPolicy => true,
            // A stale cookie and a busy KGC pass: the drone asks again.
            Self::Refused(reason) => !matches!(reason, RefusalReason::BadCookie | RefusalReason::Busy),
            Self::Released | Self::Wrong(_) | Self::OtherVersion(_) => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("released"),
            Self::NotYet { at, now } => match Condition::not_before(*at) {
                Ok(condition) => {
                    let text = condition.as_str();
                    let time = text.strip_prefix("not-before/").unwrap_or(text);
                    write!(
                        f,
                        "opens at {time}, in {} by its clock",
                        ReadableDuration(at.saturating_sub(*now))
                    )
                }
                Err(_) => f.write_str("its time has not come"),
            },
            Self::NotApproved => f.write_str("no operator has approved it"),
            Self::NotItsDrone => f.write_str("it names another drone"),
            Self::NoPolicy => f.write_str("no policy allows it"),
            Self::Wrong(fault) => write!(f, "sent a wrong share: {fault}"),
            Self::OtherVersion(version) => write!(f, "its share is of version {version}"),
            Self::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

/// A length of time in seconds, in its largest unit of which there are two at least.
struct ReadableDuration(u64);

impl fmt::Display for ReadableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(31_557_600, "years"), (86_400, "days"), (3600, "h"), (60, "min")];
        let unit = units.into_iter().find(|(unit, _)| self.0 / unit >= 2);
        let (unit, name) = unit.unwrap_or((1, "s"));
        write!(f, "{} {name}", self.0 / unit)
    }
}

/// Reason why a key was not collected. Nothing of this is authenticated but the number needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The condition; `None` if only the statement was asked for.
    pub condition: Option<Condition>,
    /// Number of shares that make a key, if known.
    pub needed: Option<u16>,
    /// Answers of the KGCs, ascending; refusals without a KGC's number come first.
    pub verdicts: Vec<(Option<KgcId>, Verdict)>,
    /// KGCs that have not answered, ascending; empty if their numbers are unknown.
    pub silent: Vec<KgcId>,
}

impl Shortfall {
    /// The earliest time that a KGC named for a condition that has not come.
    #[must_use]
    pub fn not_before(&self) -> Option<UnixTime> {
        let times = self.verdicts.iter().filter_map(|(_, verdict)| match verdict {
            Verdict::NotYet { at, .. } => Some(*at),
            _ => None,
        });
        times.min()
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let released = self.verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Released).count();
        match self.needed {
            Some(needed) => write!(f, "got {released} of {needed} required key shares")?,
            None => f.write_str("no KGC said what shares there are")?,
        }
        for (kgc, verdict) in self.verdicts.iter().filter(|(_, verdict)| *verdict != Verdict::Released) {
            match kgc {
                Some(kgc) => write!(f, "; KGC {kgc}: {verdict}")?,
                None => write!(f, "; a KGC: {verdict}")?,
            }
        }
        // The rest may have been too few to wait for, so this blames nobody.
        let mut before = "; not heard until then: KGC ";
        for kgc in &self.silent {
            write!(f, "{before}{kgc}")?;
            before = ", ";
        }
        Ok(())
    }
}

/// Events of a collector.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::From)]
#[non_exhaustive]
pub enum CollectEvent {
    /// An identity key, checked against the master public key.
    Collected {
        /// The condition.
        condition: Condition,
        /// The key.
        key: Box<IdentityKey>,
    },
    /// A statement about the master key that was not known, verified: to be kept.
    Statement {
        /// Signed bytes of the statement.
        statement: Vec<u8>,
    },
    /// The newest statement is known, as far as a KGC claims: the end of a command without a condition.
    UpToDate,
    /// The key was not collected in time, or cannot be.
    NotCollected(Shortfall),
    /// A peer that claims to be this KGC sent a wrong share; another one is asked in its place.
    Culprit {
        /// The KGC.
        kgc: KgcId,
        /// The peer.
        peer: Peer,
        /// The condition.
        condition: Condition,
        /// The fault of the share.
        fault: ShareFault,
    },
    /// Too many conditions at a time, or ended commands: this one is not collected.
    TooMany(Option<Condition>),
    /// A peer did something wrong.
    #[from]
    Blamed {
        /// The peer.
        peer: Peer,
        /// The offence.
        offence: Offence,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_what_passes_by_itself_are_no_refusals() {
        let refusals = [
            Verdict::NotYet { at: 2, now: 1 },
            Verdict::NotApproved,
            Verdict::NotItsDrone,
            Verdict::NoPolicy,
            Verdict::Refused(RefusalReason::NotAuthorised),
        ];
        assert!(refusals.iter().all(Verdict::is_refusal));
        let others = [
            Verdict::Released,
            Verdict::Wrong(ShareFault::Wrong),
            Verdict::OtherVersion(2),
            Verdict::Refused(RefusalReason::Busy),
            Verdict::Refused(RefusalReason::BadCookie),
        ];
        assert!(!others.iter().any(Verdict::is_refusal));
    }
}
