//! A logical key hierarchy as RFC 2627 describes it: a binary tree of keys, wraps for each leaver, nothing signed.
//!
//! The leaf key of a member is shared with the controller since enrolment (here by X25519). A newcomer receives the
//! keys of its path sealed under its leaf key; the others receive each new key under the old one of the same node. For
//! each leaver, one after the other, every key of its path is new and sealed under the keys of both children. An expired
//! key is replaced at the root.
//!
//! ```text
//! message  epoch u64 ‖ wraps
//! wrap     node u32 ‖ under u32 ‖ seal(key of `under`, nonce = epoch ‖ number of the wrap u32, aad = node ‖ under, key)
//! ```

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use quiver_crypto::{Secret, aead};
use rand_core::CryptoRngCore;

use super::pairwise::{controller_identity, member_identity};
use super::{GroupKey, Setting, X25519Identity};
use crate::contract::{Contender, ContenderError, Facts, KeyState, MemberId, Participant, SecretsOrigin};
use crate::scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};

const WRAP: usize = 4 + 4 + 32 + aead::TAG_LEN;
const ROOT: u32 = 1;

/// LKH.
#[derive(Debug)]
pub struct Lkh {
    setting: Setting,
    controller: [u8; 32],
    epoch: Rc<Cell<u64>>,
}

impl Lkh {
    /// Sets it up.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let controller = controller_identity(&setting, SecretsOrigin::Genuine).public();
        Self { setting, controller, epoch: Rc::default() }
    }

    /// Leaves of the tree: node n has the children 2n and 2n + 1, the root is 1, member i the node leaves + i.
    const fn leaves(&self) -> u32 {
        self.setting.members.next_power_of_two()
    }
}

impl Contender for Lkh {
    fn name(&self) -> &'static str {
        "LKH, RFC 2627"
    }

    fn facts(&self) -> Facts {
        Facts {
            needs_leader: "yes",
            heals: "no: a stolen leaf key opens every key of its path",
            proof: "of key trees in general, not of this one",
            standard: "RFC 2627 (informational)",
            quantum: "no: leaf keys come from X25519; with leaf keys shared in advance it would be",
            notes: "Nothing is signed: a member can forge wraps for those below its keys. A batch is not merged: each \
                    leaver has wraps of its own, but for those of the root. A controller that starts again has no key but the leaves', and forms \
                    the group anew.",
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
        let leaves = self.leaves();
        let scheme = LkhController { identity, publics, leaves, keys: BTreeMap::new(), epoch, key: None };
        Ok(Box::new(SchemeController::new(scheme, self.setting.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let identity = member_identity(&self.setting, id);
        let leaf = self.leaves() + id;
        let shared = identity.agree(self.controller, self.controller, identity.public());
        let keys: BTreeMap<u32, Secret<32>> = shared.map(|key| (leaf, key)).into_iter().collect();
        Ok(Box::new(SchemeMember::new(LkhMember { leaf, keys, key: None }, self.setting.pace)))
    }
}

struct LkhController {
    identity: X25519Identity,
    publics: Vec<[u8; 32]>,
    leaves: u32,
    /// Keys of all nodes above members, and of the members' leaves.
    keys: BTreeMap<u32, Secret<32>>,
    epoch: Rc<Cell<u64>>,
    key: Option<GroupKey>,
}

/// A message that grows by wraps.
struct WrapMessage {
    epoch: u64,
    bytes: Vec<u8>,
    wraps: u32,
}

impl WrapMessage {
    fn new(epoch: u64) -> Self {
        Self { epoch, bytes: epoch.to_be_bytes().to_vec(), wraps: 0 }
    }

    fn wrap(&mut self, (node, key): (u32, &Secret<32>), (under, by): (u32, &Secret<32>)) {
        let aad = [node.to_be_bytes(), under.to_be_bytes()].concat();
        self.bytes.extend(&aad);
        self.bytes.extend(aead::seal(by, &nonce(self.epoch, self.wraps), &aad, key.expose()));
        self.wraps += 1;
    }
}

fn nonce(epoch: u64, wrap: u32) -> [u8; 12] {
    let mut nonce = [0; 12];
    let bytes = epoch.to_be_bytes().into_iter().chain(wrap.to_be_bytes());
    nonce.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    nonce
}

/// Nodes above one, from its parent to the root.
fn path(node: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(node >> 1), |node| Some(node >> 1)).take_while(|node| *node >= ROOT)
}

impl LkhController {
    /// New keys for all nodes above the newcomers, once each.
    fn admit(
        &mut self,
        message: &mut WrapMessage,
        added: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        for member in added {
            let public = *self.publics.get(*member as usize).ok_or("unknown member")?;
            let shared =
                self.identity.agree(public, self.identity.public(), public).ok_or("weak public key")?;
            self.keys.insert(self.leaves + member, shared);
        }
        let changed: BTreeSet<u32> = added.iter().flat_map(|member| path(self.leaves + member)).collect();
        for node in changed {
            let key = Secret::random(rng);
            if let Some(old) = self.keys.get(&node) {
                message.wrap((node, &key), (node, old));
            }
            self.keys.insert(node, key);
        }
        let welcome = |member: &MemberId| -> Result<Parcel, String> {
            let leaf = self.leaves + member;
            let mut message = WrapMessage::new(message.epoch);
            let by = self.keys.get(&leaf).ok_or("no leaf key")?;
            for node in path(leaf) {
                message.wrap((node, self.keys.get(&node).ok_or("no key on the path")?), (leaf, by));
            }
            Ok(Parcel { to: Audience::One(*member), bytes: message.bytes })
        };
        added.iter().map(welcome).collect()
    }

    fn remove(&mut self, message: &mut WrapMessage, leavers: &[MemberId], rng: &mut dyn CryptoRngCore) {
        for leaver in leavers {
            let leaf = self.leaves + leaver;
            self.keys.remove(&leaf);
            path(leaf).filter(|node| *node != ROOT).for_each(|node| self.renew(message, node, rng));
        }
        // Once, because a later leaver could open the root that is made for an earlier one.
        if !leavers.is_empty() {
            self.renew(message, ROOT, rng);
        }
    }

    /// A new key for a node, under those of its children; none if nobody is below.
    fn renew(&mut self, message: &mut WrapMessage, node: u32, rng: &mut dyn CryptoRngCore) {
        let key = Secret::random(rng);
        let mut below = 0;
        for child in [2 * node, 2 * node + 1] {
            if let Some(by) = self.keys.get(&child) {
                message.wrap((node, &key), (child, by));
                below += 1;
            }
        }
        if below > 0 {
            self.keys.insert(node, key);
        } else {
            self.keys.remove(&node);
        }
    }
}

impl KeyScheme for LkhController {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        rng: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        let epoch = self.epoch.get() + 1;
        self.epoch.set(epoch);
        let mut message = WrapMessage::new(epoch);
        self.remove(&mut message, removed, rng);
        if added.is_empty() && removed.is_empty() {
            let key = Secret::random(rng);
            let old = self.keys.get(&ROOT).ok_or("nobody is in the group")?;
            message.wrap((ROOT, &key), (ROOT, old));
            self.keys.insert(ROOT, key);
        }
        let mut welcomes = self.admit(&mut message, added, rng)?;
        let mut parcels = Vec::new();
        if message.wraps > 0 {
            parcels.push(Parcel { to: Audience::Staying, bytes: message.bytes });
        }
        parcels.append(&mut welcomes);
        self.key = self.keys.get(&ROOT).map(|key| GroupKey::new(epoch, key.clone()));
        Ok(parcels)
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }
}

struct LkhMember {
    leaf: u32,
    /// Keys of its path.
    keys: BTreeMap<u32, Secret<32>>,
    key: Option<GroupKey>,
}

impl LkhMember {
    fn unwrapped(&self, epoch: u64, number: u32, wrap: &[u8; WRAP]) -> Option<(u32, Secret<32>)> {
        let (aad, sealed) = wrap.split_first_chunk::<8>()?;
        let [a, b, c, d, e, f, g, h] = *aad;
        let (node, under) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        if !path(self.leaf).any(|own| own == node) {
            return None;
        }
        let key = aead::open(self.keys.get(&under)?, &nonce(epoch, number), aad, sealed).ok()?;
        Some((node, key.as_slice().try_into().ok()?))
    }
}

impl KeyHolder for LkhMember {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        let Some((epoch, wraps)) = received.bytes.split_first_chunk::<8>() else { return };
        let epoch = u64::from_be_bytes(*epoch);
        if self.key.as_ref().is_some_and(|held| held.state.epoch >= epoch) {
            return;
        }
        let mut new_root = None;
        for (number, wrap) in (0..).zip(wraps.as_chunks::<WRAP>().0) {
            if let Some((node, key)) = self.unwrapped(epoch, number, wrap) {
                if node == ROOT {
                    new_root = Some(key.clone());
                }
                self.keys.insert(node, key);
            }
        }
        if let Some(key) = new_root {
            self.key = Some(GroupKey::new(epoch, key));
        }
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key.as_ref().map(|group| group.state)
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.key.as_ref().map(|group| group.key.clone())
    }
}
