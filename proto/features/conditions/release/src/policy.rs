//! Release policies: which condition keys this KGC releases to which drones. Default deny; the longest
//! matching pattern wins.
//!
//! A policy allows nothing by itself: it lets the condition's own rule decide (the clock, the operator's
//! approval, being the drone that is named).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use quiver_ainq::{Identity, Name, Role};
use quiver_ibe::{Condition, Error};

/// Kinds of conditions, which are the shortest patterns.
const KINDS: [&str; 3] = ["mission", "drone", "not-before"];

/// The conditions of a policy: all of one kind (`mission`, `drone`, `not-before`), or one condition and all
/// whose path continues it (`mission/alpha`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{_0}")]
pub struct Pattern(String);

impl Pattern {
    /// Returns true if the pattern covers a condition.
    #[must_use]
    pub fn covers(&self, condition: &Condition) -> bool {
        // Whole segments only: `mission/al` does not cover `mission/alpha`.
        let rest = condition.as_str().strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // §4.3: a kind, or the beginning of a path, which is spelled as a condition is.
        if !KINDS.contains(&text) {
            text.parse::<Condition>()?;
        }
        Ok(Self(text.to_string()))
    }
}

/// The drones of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Members and leaders of any of these groups; with none, every drone of the deployment.
    pub groups: Vec<Name>,
}

impl Audience {
    /// Returns true if a drone is of it.
    #[must_use]
    pub fn has(&self, drone: &Identity) -> bool {
        // §4.3: groups or everybody; a leader is of the group that it leads.
        let in_group = |group: &Name| {
            let leads = matches!(&drone.role, Role::Leader { group: led, .. } if led == group);
            leads || drone.groups.contains(group)
        };
        self.groups.is_empty() || self.groups.iter().any(in_group)
    }
}

/// The operator's policy for a pattern. The highest revision counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasePolicy {
    /// Rises with every change that the operator makes.
    pub revision: u64,
    /// The conditions.
    pub pattern: Pattern,
    /// Drones that may get the keys; `None` to deny them to all.
    pub audience: Option<Audience>,
}

/// The operator's decision about a mission's point. The highest revision counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Rises with every change that the operator makes.
    pub revision: u64,
    /// The condition; of kind `mission`, or it changes nothing.
    pub condition: Condition,
    /// True if it is approved. Withdrawing revokes no share that has left.
    pub approved: bool,
}

/// The newest policy of every pattern and decision about every condition. As many as the operator made.
#[derive(Debug, Default)]
pub(super) struct Policies {
    patterns: BTreeMap<Pattern, (u64, Option<Audience>)>,
    approvals: BTreeMap<Condition, (u64, bool)>,
}

impl Policies {
    /// Takes a policy unless a newer one of its pattern is known.
    pub(super) fn apply(&mut self, policy: ReleasePolicy) {
        let ReleasePolicy { revision, pattern, audience } = policy;
        // A command that overtakes a later one must not undo it.
        if self.patterns.get(&pattern).is_none_or(|(known, _)| *known < revision) {
            self.patterns.insert(pattern, (revision, audience));
        }
    }

    /// Takes an approval unless a newer one of its condition is known.
    pub(super) fn approve(&mut self, approval: Approval) {
        let Approval { revision, condition, approved } = approval;
        // Likewise by revision, so that a withdrawn approval does not come back.
        if self.approvals.get(&condition).is_none_or(|(known, _)| *known < revision) {
            self.approvals.insert(condition, (revision, approved));
        }
    }

    /// Returns true if some policy lets this drone have the condition's key, once its own rule does.
    pub(super) fn allow(&self, condition: &Condition, drone: &Identity) -> bool {
        // §4.3: the longest match counts, and what none matches is denied.
        let covering = self.patterns.iter().filter(|(pattern, _)| pattern.covers(condition));
        let longest = covering.max_by_key(|(pattern, _)| pattern.0.len());
        longest
            .is_some_and(|(_, (_, audience))| audience.as_ref().is_some_and(|audience| audience.has(drone)))
    }

    /// Returns true if an operator has approved it.
    pub(super) fn approved(&self, condition: &Condition) -> bool {
        // §4.3: by this KGC's own operator; each KGC decides by itself, so that t operators must agree.
        self.approvals.get(condition).is_some_and(|(_, approved)| *approved)
    }
}

#[cfg(test)]
mod tests {
    use quiver_testbed::name;

    use super::*;

    fn drone(groups: &[&str], role: Role) -> Identity {
        let groups = groups.iter().map(|group| name(group)).collect();
        Identity { serial: [1; 16], name: name("d"), role, groups, not_after: 9 }
    }

    fn policy(revision: u64, pattern: &str, groups: Option<&[&str]>) -> ReleasePolicy {
        let audience =
            groups.map(|groups| Audience { groups: groups.iter().map(|group| name(group)).collect() });
        ReleasePolicy { revision, pattern: pattern.parse().unwrap(), audience }
    }

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    #[test]
    fn patterns_end_where_segments_end() {
        let covers = |pattern: &str, text: &str| pattern.parse::<Pattern>().unwrap().covers(&condition(text));
        assert!(covers("mission", "mission/alpha/phase-2"));
        assert!(covers("mission/alpha", "mission/alpha/phase-2"));
        assert!(covers("mission/alpha/phase-2", "mission/alpha/phase-2"));
        assert!(!covers("mission/alpha/phase-2", "mission/alpha/phase-22"));
        assert!(!covers("mission/al", "mission/alpha"));
        assert!(!covers("drone", "mission/drone"));
        for text in ["", "mission/", "missions", "Mission", "anything/else", "mission//a", "not-before/soon"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_policy_allows_is_denied_and_the_longest_pattern_counts() {
        let (edge, other) = (drone(&["alpha"], Role::Edge), drone(&["bravo"], Role::Edge));
        let leader = drone(&[], Role::Leader { group: name("alpha"), ordinal: 1 });
        let (one, two) = (condition("mission/alpha/phase-1"), condition("mission/bravo"));
        let mut policies = Policies::default();
        assert!(!policies.allow(&one, &edge));
        policies.apply(policy(1, "mission", Some(&[])));
        assert!(policies.allow(&one, &edge) && policies.allow(&two, &other));
        policies.apply(policy(2, "mission/alpha", Some(&["alpha"])));
        assert!(policies.allow(&one, &edge) && policies.allow(&one, &leader));
        assert!(!policies.allow(&one, &other) && policies.allow(&two, &other));
        policies.apply(policy(3, "mission/alpha/phase-1", None));
        assert!(!policies.allow(&one, &edge) && policies.allow(&condition("mission/alpha"), &edge));
        // An older policy arrives late.
        policies.apply(policy(0, "mission/alpha/phase-1", Some(&[])));
        assert!(!policies.allow(&one, &edge));
        policies.apply(policy(4, "mission/alpha/phase-1", Some(&[])));
        assert!(policies.allow(&one, &edge) && policies.allow(&one, &other));
    }

    #[test]
    fn newest_word_on_an_approval_counts() {
        let phase = condition("mission/alpha");
        let mut policies = Policies::default();
        let mut say = |revision, approved| {
            policies.approve(Approval { revision, condition: phase.clone(), approved });
            policies.approved(&phase)
        };
        assert!(say(1, true));
        assert!(!say(3, false));
        assert!(!say(2, true));
    }
}
