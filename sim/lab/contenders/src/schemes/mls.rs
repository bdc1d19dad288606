//! MLS (RFC 9420) by `mls-rs` or `openmls`: the controller is the only committer, behind a perfect ordering service.
//!
//! A few members are there in full. The others take the same parcels over the radio and answer for them, but do not
//! compute: thousands of ratchet trees fit no memory. They hold what the whole members hold once they have the parcel.
//!
//! ```text
//! commit   1 ‖ epoch u64 ‖ MLSMessage
//! welcome  2 ‖ epoch u64 ‖ length of Welcome u32 ‖ Welcome ‖ ratchet tree
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use quiver_crypto::Secret;
use quiver_mls::provider::Provider;
use quiver_mls::{CommitChanges, GroupCandidate, GroupMember, Invitation, Leaf};
use rand_core::CryptoRngCore;

use super::Setting;
use crate::contract::{
    Contender, ContenderError, Facts, Fingerprint, KeyState, MemberId, Participant, SecretsOrigin,
};
use crate::scheme::{Audience, KeyHolder, KeyScheme, Parcel, ReceivedParcel, SchemeController, SchemeMember};

const COMMIT: u8 = 1;
const WELCOME: u8 = 2;
const TAG: usize = 9;
/// Members that are there in full among the founders, and among those that come later.
const WHOLE: u32 = 4;

/// Circumstances that all libraries run in.
macro_rules! notes {
    ($($own:literal),*) => {
        concat!(
            "One committer behind a perfect ordering service, so that the tree stays blank but for its path: MLS at its \
             worst. Changes by value, key packages made and uploaded beforehand and not counted. Eight members compute in \
             full; of the others the radio alone is real.",
            $(" ", $own),*
        )
    };
}

// Behind the macro that it uses.
#[cfg_attr(not(feature = "openmls"), path = "mls/openmls/absent.rs")]
pub(super) mod openmls;

/// Properties of MLS under a classical suite.
const FACTS: Facts = Facts {
    needs_leader: "no: any member can commit; here one does",
    heals: "yes: a member that commits locks out who stole its state",
    proof: "several, of the protocol",
    standard: "RFC 9420",
    quantum: "no with this ciphersuite; drafts add ML-KEM",
    notes: notes!(),
};

/// MLS by a library.
pub struct Mls<M: GroupMember> {
    name: &'static str,
    facts: Facts,
    setup: M::Setup,
    setting: Setting,
    packages: Rc<RefCell<BTreeMap<MemberId, M::Candidate>>>,
    shared: Rc<RefCell<GroupKnowledge>>,
}

/// Knowledge of members that do not compute.
#[derive(Default)]
struct GroupKnowledge {
    keys: BTreeMap<u64, KeyState>,
    removed: BTreeMap<u64, BTreeSet<MemberId>>,
}

/// MLS by `mls-rs`, over aws-lc.
pub type MlsRs = Mls<quiver_mls::MlsMember>;

impl MlsRs {
    /// Sets it up.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self::with("MLS, mls-rs", FACTS, Provider::default(), setting)
    }
}

impl<M: GroupMember> Mls<M> {
    fn with(name: &'static str, facts: Facts, setup: M::Setup, setting: Setting) -> Self {
        Self { name, facts, setup, setting, packages: Rc::default(), shared: Rc::default() }
    }

    fn failed(&self, error: &quiver_mls::Error) -> ContenderError {
        ContenderError::Scheme { scheme: self.name, what: refused(error) }
    }
}

fn refused(error: &quiver_mls::Error) -> String {
    error.to_string()
}

impl<M: GroupMember + 'static> Contender for Mls<M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    fn controller(&mut self, authority: SecretsOrigin) -> Result<Box<dyn Participant>, ContenderError> {
        let group = M::found("leader", &self.setup).map_err(|error| self.failed(&error))?;
        let shared =
            if authority == SecretsOrigin::Genuine { Rc::clone(&self.shared) } else { Rc::default() };
        let scheme = Committer {
            group,
            packages: Rc::clone(&self.packages),
            leaves: BTreeMap::new(),
            free: BTreeSet::new(),
            next: 1,
            shared,
            key: None,
        };
        Ok(Box::new(SchemeController::new(scheme, self.setting.pace)))
    }

    fn member(&mut self, id: MemberId) -> Result<Box<dyn Participant>, ContenderError> {
        let made = M::Candidate::new(&format!("drone-{id:07}"), &self.setup);
        let candidate = made.map_err(|error| self.failed(&error))?;
        let pace = self.setting.pace;
        if !self.is_whole(id) {
            self.packages.borrow_mut().insert(id, candidate);
            let shared = Rc::clone(&self.shared);
            return Ok(Box::new(SchemeMember::new(
                ReceiptMember { id, shared, key: None, is_removed: false },
                pace,
            )));
        }
        // The controller has the published half only, as bytes; both are here because the crate keeps them together.
        let packages = Rc::clone(&self.packages);
        packages.borrow_mut().insert(id, candidate);
        Ok(Box::new(SchemeMember::new(WholeMember::<M> { id, packages, member: None, key: None }, pace)))
    }

    fn is_whole(&self, member: MemberId) -> bool {
        let first_newcomer = self.setting.founders;
        member < WHOLE || (first_newcomer..first_newcomer + WHOLE).contains(&member)
    }
}

struct Committer<M: GroupMember> {
    group: M,
    packages: Rc<RefCell<BTreeMap<MemberId, M::Candidate>>>,
    /// Leaves of the members: an addition takes the leftmost blank leaf (RFC 9420, 12.1.1).
    leaves: BTreeMap<MemberId, Leaf>,
    free: BTreeSet<Leaf>,
    next: Leaf,
    shared: Rc<RefCell<GroupKnowledge>>,
    key: Option<KeyState>,
}

fn state(member: &impl GroupMember) -> Result<KeyState, String> {
    let secret = Secret::new(member.secret().map_err(|error| refused(&error))?);
    Ok(KeyState { epoch: member.epoch(), key: Fingerprint::of(&secret) })
}

impl<M: GroupMember> KeyScheme for Committer<M> {
    fn rekey(
        &mut self,
        added: &[MemberId],
        removed: &[MemberId],
        _: &mut dyn CryptoRngCore,
    ) -> Result<Vec<Parcel>, String> {
        let leaves: Vec<Leaf> = removed
            .iter()
            .map(|member| self.leaves.remove(member).ok_or("no such member"))
            .collect::<Result<_, _>>()?;
        self.free.extend(&leaves);
        let had_members = !self.leaves.is_empty();
        let sent = {
            let packages = self.packages.borrow();
            let package =
                |id: &MemberId| packages.get(id).map(M::Candidate::key_package).ok_or("no key package");
            let added: Vec<&[u8]> = added.iter().map(package).collect::<Result<_, _>>()?;
            self.group
                .commit(CommitChanges { removed: &leaves, added: &added })
                .map_err(|error| refused(&error))?
        };
        for member in added {
            let leaf = self.free.pop_first().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
            self.leaves.insert(*member, leaf);
        }
        let key = state(&self.group)?;
        let mut shared = self.shared.borrow_mut();
        shared.keys.insert(key.epoch, key);
        shared.removed.insert(key.epoch, removed.iter().copied().collect());
        self.key = Some(key);
        let tag = |kind: u8| {
            let mut bytes = vec![kind];
            bytes.extend(key.epoch.to_be_bytes());
            bytes
        };
        let mut parcels = Vec::new();
        if had_members {
            let mut bytes = tag(COMMIT);
            bytes.extend(&sent.commit);
            parcels.push(Parcel { to: Audience::Staying, bytes });
        }
        if let Some(Invitation { welcome, tree }) = &sent.invitation {
            let mut bytes = tag(WELCOME);
            bytes.extend(u32::try_from(welcome.len()).map_err(|_| "a Welcome of 4 GB")?.to_be_bytes());
            bytes.extend(welcome);
            bytes.extend(tree);
            parcels.push(Parcel { to: Audience::Newcomers, bytes });
        }
        Ok(parcels)
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key
    }
}

/// A member that computes.
struct WholeMember<M: GroupMember> {
    id: MemberId,
    packages: Rc<RefCell<BTreeMap<MemberId, M::Candidate>>>,
    member: Option<M>,
    key: Option<KeyState>,
}

impl<M: GroupMember> WholeMember<M> {
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        let (tag, body) = bytes.split_first_chunk::<TAG>()?;
        match (tag.first()?, &mut self.member) {
            (&COMMIT, Some(member)) => {
                if !member.follow(body).ok()? {
                    self.member = None;
                    self.key = None;
                    return None;
                }
            }
            (&WELCOME, None) => {
                let (length, rest) = body.split_first_chunk::<4>()?;
                let (welcome, tree) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
                let invitation = Invitation { welcome: welcome.to_vec(), tree: tree.to_vec() };
                self.member = Some(self.packages.borrow().get(&self.id)?.join(&invitation).ok()?);
            }
            _ => return None,
        }
        self.key = Some(state(self.member.as_ref()?).ok()?);
        Some(())
    }
}

impl<M: GroupMember> KeyHolder for WholeMember<M> {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        self.take(received.bytes);
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key
    }

    fn captured_key(&self) -> Option<Secret<32>> {
        self.member.as_ref()?.secret().ok().map(Secret::new)
    }
}

/// A member of which the radio alone is real.
struct ReceiptMember {
    id: MemberId,
    shared: Rc<RefCell<GroupKnowledge>>,
    key: Option<KeyState>,
    /// True if it was removed: a later welcome is another's.
    is_removed: bool,
}

impl ReceiptMember {
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        if self.is_removed {
            return None;
        }
        let (tag, _) = bytes.split_first_chunk::<TAG>()?;
        let (kind, epoch) = tag.split_first()?;
        let epoch = u64::from_be_bytes(epoch.try_into().ok()?);
        let next = self.key.map_or(epoch, |held| held.epoch + 1);
        if epoch != next || (*kind == COMMIT) != self.key.is_some() {
            return None;
        }
        let shared = self.shared.borrow();
        self.is_removed = shared.removed.get(&epoch)?.contains(&self.id);
        self.key = shared.keys.get(&epoch).copied().filter(|_| !self.is_removed);
        Some(())
    }
}

impl KeyHolder for ReceiptMember {
    fn open(&mut self, received: ReceivedParcel<'_>) {
        self.take(received.bytes);
    }

    fn key_state(&self) -> Option<KeyState> {
        self.key
    }

    fn takes_bytes(&self) -> bool {
        false
    }
}
