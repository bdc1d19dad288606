//! A scheme of one's own in the arena: each member shares a key with the controller in advance, and is sent the group
//! key under it.
//!
//! `cargo run -p quiver-contenders --example own_scheme`

#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::collections::BTreeSet;

use quiver_contenders::probe::{self, MEMBERS};
use quiver_contenders::{
    Arena, ArenaCarrier, ArenaEvent, Audience, Contender, ContenderError, Facts, Fingerprint, KeyHolder,
    KeyScheme, KeyState, MemberId, Pace, Parcel, Participant, ReceivedParcel, SchemeController, SchemeMember,
    SecretsOrigin,
};
use quiver_crypto::{Secret, aead, prf};
use quiver_world::radio::{Loss, Preset};
use rand_core::CryptoRngCore;

/// Shared keys come from one secret of the controller's.
struct Shared {
    master: Secret<32>,
    pace: Pace,
}

fn shared_key(master: &Secret<32>, id: MemberId) -> Secret<32> {
    prf(master, "example", "member", &[&id.to_be_bytes()])
}

fn nonce(epoch: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&epoch.to_be_bytes());
    nonce
}

impl Contender for Shared {
    fn name(&self) -> &'static str {
        "shared keys"
    }

    fn facts(&self) -> Facts {
        let no = "no";
        Facts {
            needs_leader: "yes",
            heals: no,
            proof: no,
            standard: no,
            quantum: "yes",
            notes: "An example.",
        }
    }

    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        // A usurper has nothing but what is public, and here nothing is.
        let master =
            if authority == SecretsOrigin::Genuine { self.master.clone() } else { Secret::new([0; 32]) };
        let scheme = Controller { master, members: BTreeSet::new(), key: None };
        Ok(Box::new(SchemeController::new(scheme, self.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let holder = Member { shared: shared_key(&self.master, id), key: None };
        Ok(Box::new(SchemeMember::new(holder, self.pace)))
    }
}

struct Controller {
    master: Secret<32>,
    members: BTreeSet<MemberId>,
    key: Option<KeyState>,
}

impl KeyScheme for Controller {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        self.members.extend(added);
        self.members.retain(|member| !removed.contains(member));
        let (epoch, key) = (self.key.map_or(1, |key| key.epoch + 1), Secret::random(rng));
        self.key = Some(KeyState { epoch, key: Fingerprint::of(&key) });
        let parcel = |id: &MemberId| {
            let sealed = aead::seal(&shared_key(&self.master, *id), &nonce(epoch), b"", key.expose());
            Parcel { to: Audience::One(*id), bytes: [&epoch.to_be_bytes()[..], &sealed].concat() }
        };
        Ok(self.members.iter().map(parcel).collect())
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key
    }
}

struct Member {
    shared: Secret<32>,
    key: Option<KeyState>,
}

impl KeyHolder for Member {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        let Some((epoch, sealed)) = received.bytes.split_first_chunk() else { return };
        let epoch = u64::from_be_bytes(*epoch);
        // An old message must not bring an old key back.
        if self.key.is_some_and(|held| held.epoch >= epoch) {
            return;
        }
        let Ok(key) = aead::open(&self.shared, &nonce(epoch), b"", sealed) else { return };
        if let Ok(key) = Secret::try_from(key.as_slice()) {
            self.key = Some(KeyState { epoch, key: Fingerprint::of(&key) });
        }
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key
    }
}

/// Plays three events, and has the scheme probed.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loss = Loss::independent(0.05)?;
    let link = ArenaCarrier::Radio { profile: Box::new(Preset::Ieee802154.profile()), loss };
    let mut scheme = Shared { master: Secret::new([7; 32]), pace: link.pace() };
    let mut arena = Arena::new(&mut scheme, link, 20, ArenaEvent::newcomers(20), 1)?;
    for event in [ArenaEvent::Form, ArenaEvent::RemoveOne, ArenaEvent::AdmitTenth] {
        let outcome = arena.play(event)?;
        println!("{}: {} bytes, everybody after {:?}", event.title(), outcome.bytes, outcome.until[2]);
        assert_eq!((outcome.reached, outcome.complaints.len()), (outcome.members, 0));
    }
    assert!(arena.violations().is_empty());
    // The adversary that knows no scheme finds no fault, but opens recordings with a stolen key.
    scheme.pace = probe::link().pace();
    let findings = probe::probe(&mut scheme, 1)?;
    println!("{} members probed: {:?}", MEMBERS, findings.words());
    assert!(findings.is_sound() && findings.recordings_open);
    Ok(())
}
