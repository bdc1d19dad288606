//! An adversary that knows no scheme: it records, repeats, combines, and uses what it captured or stole.
//!
//! | what it tries | what must not come of it |
//! |---|---|
//! | a member is removed; the adversary has its last key, and XORs it with what was sent before and after | a later key |
//! | it makes a controller of what is public, and sends what that one sends | a member that takes its key |
//! | it sends again what the controller sent, as it was and under fresh numbers of the delivery | a member that goes back |
//! | it steals a member's long-term secrets and plays it what it recorded | a key of the past |

use std::collections::{BTreeSet, HashSet};

use quiver_crypto::Secret;
use quiver_machine::{Destination, Input, Now, Output, Route, Via};
use quiver_testbed::EPOCH_START;
use quiver_world::radio::{Loss, Preset};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::arena::{Arena, ArenaCarrier, ArenaEvent, ArenaViolation, Recorded};
use crate::contract::{
    CONTROLLER, Command, Contender, ContenderError, Fingerprint, MemberId, Pace, SecretsOrigin, peer_of,
};
use crate::delivery::FRAGMENT_HEADER;

/// Members of the group that is probed, and those that come later.
pub const MEMBERS: u32 = 8;
/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of recorded messages that are combined with each other, at most.
const COMBINED: usize = 1024;
/// Member that is removed, and one that stays.
const REMOVED: MemberId = 1;
const STAYS: MemberId = 0;

/// Findings of the probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeFindings {
    /// The key of a removed member and two recorded messages give a later key.
    pub masks_repeat: bool,
    /// A member takes a key of a controller that has no secret of the group's.
    pub takes_foreign_keys: bool,
    /// A member goes back to an old key when an old message is sent again.
    pub goes_back: bool,
    /// A member's long-term secrets open what was recorded before they were stolen.
    pub recordings_open: bool,
    /// Violations without an adversary.
    pub violations: BTreeSet<ArenaViolation>,
}

impl ProbeFindings {
    /// Returns true if nothing was found but, perhaps, that stolen secrets open recordings: that is a
    /// property, and no fault.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.masks_repeat && !self.takes_foreign_keys && !self.goes_back && self.violations.is_empty()
    }

    /// The findings in words.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        let all = [
            (self.masks_repeat, "a removed member computes the next key from two recorded messages"),
            (self.takes_foreign_keys, "members take a key that anybody made from public keys"),
            (self.goes_back, "a message sent again brings an old key back"),
            (self.recordings_open, "a stolen long-term key opens recordings"),
            (!self.violations.is_empty(), "an invariant does not hold"),
        ];
        all.into_iter().filter(|(found, _)| *found).map(|(_, words)| words).collect()
    }
}

/// The link over which a scheme is probed: frames of any size, none lost, so that a message is one frame.
#[must_use]
pub fn link() -> ArenaCarrier {
    ArenaCarrier::Radio { profile: Box::new(Preset::Ideal.profile()), loss: Loss::None }
}

/// Probes a scheme that was set up for [`MEMBERS`] founders and the newcomers of all events, over [`link`].
///
/// # Errors
/// [`ContenderError`].
pub fn probe(contender: &mut dyn Contender, seed: u64) -> Result<ProbeFindings, ContenderError> {
    let (mut findings, recorded, keys);
    {
        let mut arena = Arena::new(contender, link(), MEMBERS, ArenaEvent::newcomers(MEMBERS), seed)?;
        arena.record();
        arena.play(ArenaEvent::Form)?;
        arena.play(ArenaEvent::Expire)?;
        // From here on one member has nothing but its last key.
        let removed_key = arena.member(REMOVED).and_then(crate::Participant::captured_key);
        let before = arena.recorded().len();
        arena.play(ArenaEvent::RemoveOne)?;
        let (old, new) = arena.recorded().split_at(before);
        findings = ProbeFindings {
            masks_repeat: removed_key.as_ref().is_some_and(|key| masks_repeat(key, old, new, arena.keys())),
            ..ProbeFindings::default()
        };
        arena.play(ArenaEvent::AdmitOne)?;
        findings.violations.clone_from(arena.violations());
        (recorded, keys) = (arena.recorded().to_vec(), arena.keys().to_vec());
        findings.goes_back = goes_back(&mut arena, &recorded);
    }
    findings.recordings_open = recordings_open(contender, &recorded, &keys)?;
    findings.takes_foreign_keys = takes_foreign_keys(contender, seed)?;
    Ok(findings)
}

/// A known key, and each pair of windows of messages before and after.
fn masks_repeat(key: &Secret<KEY>, old: &[Recorded], new: &[Recorded], keys: &[Fingerprint]) -> bool {
    let newer: HashSet<Fingerprint> = keys.iter().copied().collect();
    let own = Fingerprint::of(key);
    let windows = |recorded: &[Recorded]| -> Vec<[u8; KEY]> {
        let sent = recorded.iter().filter(|frame| frame.from == 0);
        let windows = sent
            .flat_map(|frame| frame.bytes.windows(KEY).filter_map(|w| w.try_into().ok()).collect::<Vec<_>>());
        windows.collect()
    };
    // The last messages before, and the first after, as much as is computed at once.
    let (old, new) = (windows(old), windows(new));
    let old = old.get(old.len().saturating_sub(COMBINED)..).unwrap_or_default();
    let new = new.get(..new.len().min(COMBINED)).unwrap_or_default();
    let combined = |a: &[u8; KEY], b: &[u8; KEY]| {
        let mut bytes = *key.expose();
        bytes.iter_mut().zip(a.iter().zip(b)).for_each(|(to, (a, b))| *to ^= a ^ b);
        Fingerprint::of(&Secret::new(bytes))
    };
    old.iter().any(|a| {
        new.iter().any(|b| {
            let candidate = combined(a, b);
            candidate != own && newer.contains(&candidate)
        })
    })
}

/// A frame under another number of the delivery, if it is one of the delivery's.
fn renumbered(bytes: &[u8], by: u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= FRAGMENT_HEADER
        && let Some(number) = bytes.get_mut(2..4)
        && let Some(chunk) = number.first_chunk_mut::<2>()
    {
        *chunk = u16::from_be_bytes(*chunk).wrapping_add(by).to_be_bytes();
    }
    bytes
}

fn goes_back(arena: &mut Arena<'_>, recorded: &[Recorded]) -> bool {
    let held =
        |arena: &Arena<'_>| arena.member(STAYS).and_then(|member| member.key_state()).map(|state| state.key);
    let newest = held(arena);
    let to_it = |frame: &&Recorded| frame.from == 0 && frame.to.is_none_or(|to| to == STAYS as usize + 1);
    recorded.iter().filter(to_it).any(|frame| {
        arena.inject(STAYS, &frame.bytes);
        arena.inject(STAYS, &renumbered(&frame.bytes, 1 << 14));
        held(arena).is_some_and(|key| Some(key) != newest)
    })
}

fn recordings_open(
    contender: &mut dyn Contender,
    recorded: &[Recorded],
    keys: &[Fingerprint],
) -> Result<bool, ContenderError> {
    let mut thief = contender.member(STAYS)?;
    let mut rng = ChaCha8Rng::from_seed([3; 32]);
    let now = Now { monotonic: std::time::Duration::from_secs(1), unix: EPOCH_START };
    thief.handle_input(now, Input::Connected { peer: CONTROLLER, route: Route::Leader }, &mut rng);
    for frame in
        recorded.iter().filter(|frame| frame.from == 0 && frame.to.is_none_or(|to| to == STAYS as usize + 1))
    {
        for via in [Via::Group, Via::Peer] {
            thief.handle_input(now, Input::Received { from: CONTROLLER, via, bytes: &frame.bytes }, &mut rng);
            while !matches!(thief.poll_output(), Output::Timeout(_)) {}
            if thief.key_state().is_some_and(|state| keys.contains(&state.key)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A group forms; then a controller that has nothing but what is public sends what it would send to form it.
fn takes_foreign_keys(contender: &mut dyn Contender, seed: u64) -> Result<bool, ContenderError> {
    let mut usurper = contender.controller(SecretsOrigin::Public)?;
    let mut rng = ChaCha8Rng::from_seed([4; 32]);
    let now = Now { monotonic: std::time::Duration::from_secs(1), unix: EPOCH_START };
    let mut frames: Vec<(Option<MemberId>, Vec<u8>)> = Vec::new();
    let mut poll = |usurper: &mut dyn crate::Participant| loop {
        match usurper.poll_output() {
            Output::Timeout(_) => break,
            Output::Transmit { to: Destination::Group, payload } => frames.push((None, payload)),
            Output::Transmit { to: Destination::Peer(peer), payload } => {
                frames.push((crate::member_of(peer), payload));
            }
            _ => {}
        }
    };
    let members: Vec<MemberId> = (0..MEMBERS).collect();
    usurper.handle_input(now, Input::Timeout, &mut rng);
    for member in &members {
        usurper.handle_input(
            now,
            Input::Connected { peer: peer_of(*member), route: Route::Inbound },
            &mut rng,
        );
    }
    poll(usurper.as_mut());
    usurper.handle_input(now, Input::Command(Command::Admit(members)), &mut rng);
    poll(usurper.as_mut());
    // Parcels for one member after the other wait for reports that never come.
    for second in 1..300 {
        let now =
            Now { monotonic: std::time::Duration::from_secs(second * 10), unix: EPOCH_START + second * 10 };
        usurper.handle_input(now, Input::Timeout, &mut rng);
        poll(usurper.as_mut());
    }
    let mut arena = Arena::new(contender, link(), MEMBERS, 0, seed)?;
    arena.play(ArenaEvent::Form)?;
    let genuine: BTreeSet<Fingerprint> = arena.keys().iter().copied().collect();
    for (to, frame) in frames {
        for member in (0..MEMBERS).filter(|member| to.is_none_or(|to| to == *member)) {
            arena.inject(member, &frame);
            arena.inject(member, &renumbered(&frame, 1 << 13));
            let held = arena.member(member).and_then(|member| member.key_state());
            if held.is_some_and(|state| !genuine.contains(&state.key)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Circumstances under which schemes are set up for the probe.
#[must_use]
pub fn setting(seed: u64) -> crate::schemes::Setting {
    let pace: Pace = link().pace();
    crate::schemes::Setting {
        members: MEMBERS + ArenaEvent::newcomers(MEMBERS),
        founders: MEMBERS,
        pace,
        shared_medium: true,
        seed,
    }
}
