//! A sealed key to each member: X25519 between long-term keys, ChaCha20-Poly1305 around the group key.
//!
//! ```text
//! message  epoch u64 ‖ seal(k_i, nonce = epoch ‖ 0^4, aad = "pairwise", K_g)
//! ```

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use quiver_crypto::{Secret, aead};
use rand_core::CryptoRngCore;

use super::{GroupKey, Setting, X25519Identity, stream};
use crate::contract::{Contender, ContenderError, Facts, KeyState, MemberId, Participant, SecretsOrigin};
use crate::scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};

const AAD: &[u8] = b"pairwise";

/// Pairwise wraps of the key, as most systems make them.
#[derive(Debug)]
pub struct Pairwise {
    setting: Setting,
    controller: [u8; 32],
    /// Newest epoch, which the controller keeps on its disk.
    epoch: Rc<Cell<u64>>,
}

impl Pairwise {
    /// Sets it up.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let controller = X25519Identity::generate(&mut stream(setting.seed, 0)).public();
        Self { setting, controller, epoch: Rc::default() }
    }
}

/// The long-term key of a member.
pub(super) fn member_identity(setting: &Setting, id: MemberId) -> X25519Identity {
    X25519Identity::generate(&mut stream(setting.seed, u64::from(id) + 1))
}

/// The long-term key of the controller, or of somebody who has none of it.
pub(super) fn controller_identity(setting: &Setting, authority: SecretsOrigin) -> X25519Identity {
    let seed = setting.seed ^ u64::from(authority == SecretsOrigin::Public).rotate_right(1);
    X25519Identity::generate(&mut stream(seed, 0))
}

impl Contender for Pairwise {
    fn name(&self) -> &'static str {
        "pairwise, sealed"
    }

    fn facts(&self) -> Facts {
        Facts {
            needs_leader: "yes",
            heals: "no: a stolen long-term key opens every key sent to its owner",
            proof: "none of its own; its parts have some",
            standard: "none; as HPKE (RFC 9180) is used",
            quantum: "no: X25519",
            notes: "Public keys are known from enrolment; a newcomer's request is not counted.",
        }
    }

    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        let identity = controller_identity(&self.setting, authority);
        let epoch = if authority == SecretsOrigin::Genuine {
            Rc::clone(&self.epoch)
        } else {
            Rc::new(Cell::new(1 << 32))
        };
        let publics =
            (0..self.setting.members).map(|id| member_identity(&self.setting, id).public()).collect();
        let scheme = PairwiseController { identity, publics, shared: BTreeMap::new(), epoch, key: None };
        Ok(Box::new(SchemeController::new(scheme, self.setting.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let identity = member_identity(&self.setting, id);
        let shared = identity.agree(self.controller, self.controller, identity.public());
        Ok(Box::new(SchemeMember::new(PairwiseMember { shared, key: None }, self.setting.pace)))
    }
}

struct PairwiseController {
    identity: X25519Identity,
    publics: Vec<[u8; 32]>,
    /// Keys shared with the members of the group.
    shared: BTreeMap<MemberId, Secret<32>>,
    epoch: Rc<Cell<u64>>,
    key: Option<GroupKey>,
}

fn nonce(epoch: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce.iter_mut().zip(epoch.to_be_bytes()).for_each(|(to, from)| *to = from);
    nonce
}

impl KeyScheme for PairwiseController {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        removed.iter().for_each(|member| drop(self.shared.remove(member)));
        for member in added {
            let public = *self.publics.get(*member as usize).ok_or("unknown member")?;
            let shared =
                self.identity.agree(public, self.identity.public(), public).ok_or("weak public key")?;
            self.shared.insert(*member, shared);
        }
        let epoch = self.epoch.get() + 1;
        self.epoch.set(epoch);
        let group = GroupKey::new(epoch, Secret::random(rng));
        let seal = |(member, shared): (&MemberId, &Secret<32>)| {
            let mut bytes = epoch.to_be_bytes().to_vec();
            bytes.extend(aead::seal(shared, &nonce(epoch), AAD, group.key.expose()));
            Parcel { to: Audience::One(*member), bytes }
        };
        let parcels = self.shared.iter().map(seal).collect();
        self.key = Some(group);
        Ok(parcels)
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }
}

struct PairwiseMember {
    shared: Option<Secret<32>>,
    key: Option<GroupKey>,
}

impl PairwiseMember {
    fn opened(&self, bytes: &[u8]) -> Option<GroupKey> {
        let (epoch, sealed) = bytes.split_first_chunk::<8>()?;
        let epoch = u64::from_be_bytes(*epoch);
        if self.key.as_ref().is_some_and(|held| held.state.epoch >= epoch) {
            return None;
        }
        let key = aead::open(self.shared.as_ref()?, &nonce(epoch), AAD, sealed).ok()?;
        Some(GroupKey::new(epoch, key.as_slice().try_into().ok()?))
    }
}

impl KeyHolder for PairwiseMember {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        if let Some(key) = self.opened(received.bytes) {
            self.key = Some(key);
        }
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.key.as_ref().map(|group| group.key.clone())
    }
}
