//! Tells local programs by `STATUSTEXT` why nothing passes, or soon will not: once, and then seldom.

use std::time::Duration;

use quiver_mavlink::message::Severity;
use quiver_mavlink::{Origin, message};
use tokio::time::Instant;

use crate::group_inputs::MissingKeyReason;

/// Time between two texts.
const BETWEEN: Duration = Duration::from_secs(5);
/// Time after which the same is told again.
const REPEAT: Duration = Duration::from_secs(300);
/// Time without a problem after which the same problem is news.
const SETTLED: Duration = Duration::from_secs(10);
/// Time for which what is usual for a moment (a join, a re-key) must last before it is told.
const GRACE: Duration = Duration::from_secs(3);

/// Reason for which frames do not pass, or soon will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassageProblem {
    /// The drone has held no key yet.
    NotJoined,
    /// The last key ran out.
    RanOut,
    /// The drone holds no key, for a moment.
    BetweenKeys,
    /// The drone holds no key, and the service knows why.
    Obstacle(MissingKeyReason),
    /// The drone was granted no system id.
    NoSystemId,
    /// A program speaks as another system than the one granted.
    OtherSystem,
    /// Others have a newer key.
    Behind,
    /// The key ends soon, and there is no newer one.
    EndsSoon,
    /// The autopilot listens to this ground station, and another one is there.
    OtherGround {
        /// The system that the autopilot's parameter names.
        listens: u32,
        /// The system that beats as a ground station.
        heard: u32,
    },
}

impl PassageProblem {
    /// Returns true if nothing passes for it.
    pub(super) const fn stops(self) -> bool {
        !matches!(self, Self::Behind | Self::EndsSoon | Self::OtherGround { .. })
    }

    pub(super) const fn severity(self) -> Severity {
        if self.stops() { Severity::Critical } else { Severity::Warning }
    }

    /// Time for which it must last.
    const fn grace(self) -> Duration {
        match self {
            Self::NotJoined | Self::RanOut | Self::BetweenKeys | Self::NoSystemId => GRACE,
            Self::Obstacle(MissingKeyReason::StandsBy | MissingKeyReason::Clock) => GRACE,
            // They are definite, or have lasted by now: nothing opened for 3 s before `Behind` (§20.8).
            Self::Obstacle(_)
            | Self::OtherSystem
            | Self::Behind
            | Self::EndsSoon
            | Self::OtherGround { .. } => Duration::ZERO,
        }
    }

    /// Text for an operator; at most 50 bytes.
    pub(super) fn text(self) -> String {
        // STATUSTEXT has 50 bytes and is cut behind them: the end says that nothing passes.
        match self {
            Self::NotJoined => "Quiver: not joined yet, nothing passes".into(),
            Self::RanOut => "Quiver: the group key ran out, nothing passes".into(),
            Self::BetweenKeys => "Quiver: waits for a new key, nothing passes".into(),
            Self::Obstacle(obstacle) => format!("Quiver: {}, nothing passes", obstacle.text()),
            Self::NoSystemId => "Quiver: the leader granted no system id".into(),
            Self::OtherSystem => "Quiver: not the system id that was granted".into(),
            Self::Behind => "Quiver: others have a newer key, no leader heard".into(),
            Self::EndsSoon => "Quiver: the group key ends soon, no newer one came".into(),
            Self::OtherGround { listens, heard } => {
                format!("Quiver: autopilot obeys ground {listens}, not {heard}")
            }
        }
    }
}

/// PassageProblem that was told last, and the time of that.
#[derive(Debug, Default)]
pub(super) struct StatusTextThrottle {
    /// The problem, and since when.
    problem: Option<(PassageProblem, Instant)>,
    /// Time since which there is no problem.
    fine: Option<Instant>,
    told: Option<(PassageProblem, Instant)>,
    last: Option<Instant>,
    sequence: u8,
}

impl StatusTextThrottle {
    /// Takes the problem that there is now. Returns it if it is to be told: it is another than before, or was told long ago.
    pub(super) fn note(&mut self, now: Instant, problem: Option<PassageProblem>) -> Option<PassageProblem> {
        let Some(problem) = problem else {
            self.problem = None;
            let since = *self.fine.get_or_insert(now);
            // A problem that comes and goes is told once, not each time.
            self.told.take_if(|_| now.duration_since(since) >= SETTLED);
            return None;
        };
        self.fine = None;
        let since = match self.problem {
            Some((known, since)) if known == problem => since,
            _ => now,
        };
        self.problem = Some((problem, since));
        // Repeated after minutes, because a ground station that connects later saw nothing of it.
        let is_told = self.told.is_some_and(|(told, at)| told == problem && now.duration_since(at) < REPEAT);
        if is_told || now.duration_since(since) < problem.grace() || !self.may_speak(now) {
            return None;
        }
        self.told = Some((problem, now));
        self.last = Some(now);
        Some(problem)
    }

    /// A program is new, and was told nothing yet.
    pub(super) fn repeat(&mut self) {
        self.told = None;
    }

    /// Returns true if nothing was told lately.
    fn may_speak(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= BETWEEN)
    }

    /// A `STATUSTEXT` frame.
    pub(super) fn frame(&mut self, system: u32, severity: Severity, text: &str) -> Vec<u8> {
        let origin = Origin { system, component: message::BRIDGE_COMPONENT, sequence: self.next_sequence() };
        message::status_text(origin, severity, text)
    }

    /// Sequence number of the next frame of this end's own.
    pub(super) const fn next_sequence(&mut self) -> u8 {
        // One number for texts and values, because receivers count a gap as frames that were lost.
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn all() -> Vec<PassageProblem> {
        let others = [
            PassageProblem::NotJoined,
            PassageProblem::RanOut,
            PassageProblem::BetweenKeys,
            PassageProblem::NoSystemId,
            PassageProblem::OtherSystem,
            PassageProblem::Behind,
            PassageProblem::EndsSoon,
            PassageProblem::OtherGround { listens: 4_000_000_000, heard: 4_000_000_001 },
        ];
        MissingKeyReason::ALL.into_iter().map(PassageProblem::Obstacle).chain(others).collect()
    }

    #[test]
    fn texts_fit_and_each_says_something_else() {
        let texts: BTreeSet<_> = all().into_iter().map(PassageProblem::text).collect();
        assert_eq!(texts.len(), all().len());
        for text in texts {
            let fits = text.len() <= message::MAX_STATUS_TEXT || text.contains("4000000000");
            assert!(fits && text.starts_with("Quiver: "), "{text}");
        }
    }

    #[test]
    fn trouble_is_told_once_and_then_seldom() {
        let (start, mut texts) = (Instant::now(), StatusTextThrottle::default());
        let evicted = PassageProblem::Obstacle(MissingKeyReason::Evicted);
        let told: Vec<_> =
            (0..900).filter(|second| texts.note(start + SECOND * *second, Some(evicted)).is_some()).collect();
        assert_eq!(told, [0, 300, 600]);
        // Another is told at once.
        assert_eq!(
            texts.note(start + SECOND * 901, Some(PassageProblem::OtherSystem)),
            Some(PassageProblem::OtherSystem)
        );
    }

    #[test]
    fn what_is_over_in_a_moment_is_not_told() {
        let (start, mut texts) = (Instant::now(), StatusTextThrottle::default());
        for trouble in all() {
            let told = texts.note(start + SECOND * 400, Some(trouble));
            let is_definite = trouble.grace().is_zero();
            assert!(told.is_none() || is_definite, "{trouble:?}");
            texts = StatusTextThrottle::default();
        }
        // Now and then without a key for two seconds: nothing is said.
        for second in 0..100 {
            let trouble = (second % 10 < 3).then_some(PassageProblem::BetweenKeys);
            assert_eq!(texts.note(start + SECOND * second, trouble), None, "{second}");
        }
    }

    #[test]
    fn trouble_that_comes_and_goes_is_told_again_only_after_a_while_without() {
        let (start, mut texts) = (Instant::now(), StatusTextThrottle::default());
        let mut told = 0;
        for second in 0..100 {
            let trouble = (second % 2 == 0).then_some(PassageProblem::OtherSystem);
            told += u32::from(texts.note(start + SECOND * second, trouble).is_some());
        }
        assert_eq!(told, 1);
        for second in 100..111 {
            texts.note(start + SECOND * second, None);
        }
        assert!(texts.note(start + SECOND * 112, Some(PassageProblem::OtherSystem)).is_some());
        // A program that comes later is told as well, and two texts are apart.
        texts.repeat();
        assert!(texts.note(start + SECOND * 113, Some(PassageProblem::OtherSystem)).is_none());
        assert!(texts.note(start + SECOND * 117, Some(PassageProblem::OtherSystem)).is_some());
    }
}
