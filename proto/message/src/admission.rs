//! Messages between an anonymous drone and a leader that demands a policy for joining.
//!
//! The steps of the exchange are opaque here: they travel as bounded bytes. All of a run have the nonce of
//! its hello.

use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, KemTerm, Name, Signature, Slot, Suite};
use quiver_kem::KemSet;

use crate::{COOKIE_LEN, KemOffer, MessageError, Nonce, field, kem, wire};

/// Bytes a policy that the KGC signed may have.
pub const MAX_ADMISSION_POLICY_LEN: usize = 16_896;
/// Bytes a step of the exchange may have: an offer to a credential of 800 bits, or 64 KiB of tables.
pub const MAX_ADMISSION_STEP_LEN: usize = 192 * 1024;

/// Asks a leader for its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionHello {
    /// Fresh for every attempt.
    pub nonce: Nonce,
    /// The group to join.
    pub group: Name,
    /// Parameter set that the drone's deployment says.
    pub kem: Option<KemSet>,
}

/// A challenge, the leader's identity, and its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionChallenge<S: Suite> {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Opaque to the drone.
    pub cookie: [u8; COOKIE_LEN],
    /// The leader of the group.
    pub leader: DronePublicKey<S>,
    /// The policy, signed by the KGC; at most [`MAX_ADMISSION_POLICY_LEN`] bytes.
    pub policy: Vec<u8>,
    /// Signature `admission` by the leader, over the group and the policy: a drone computes nothing for a
    /// policy that no leader of its group demands.
    pub signature: Signature<S>,
    /// Parameter set and count of the leader's term, if it has a second factor.
    pub kem: Option<KemTerm>,
}

/// The first step of the exchange: a fresh key that no other run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionProof {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The cookie, unchanged.
    pub cookie: [u8; COOKIE_LEN],
    /// Bytes of the step: at most [`MAX_ADMISSION_STEP_LEN`], not looked at before the cookie is checked.
    pub step: Vec<u8>,
    /// An encapsulation key of this run, if the leader's term has a second factor: never the name of a κ, by
    /// which two runs could be linked.
    pub kem: Option<KemOffer>,
}

/// Any other step, of either side; or, empty, that the drone is ready for more tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionStep {
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// Bytes of the step: at most [`MAX_ADMISSION_STEP_LEN`].
    pub step: Vec<u8>,
    /// With the leader's first step of a run with a second factor: the ciphertext for the drone's
    /// encapsulation key. Otherwise empty.
    pub ciphertext: Vec<u8>,
}

/// An anonymous member leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionLeave {
    /// The group.
    pub group: Name,
    /// The member's slot.
    pub slot: Slot,
    /// D held.
    pub held: [u8; 32],
    /// [`leave_tag`](quiver_ainq::leave_tag) over it.
    pub tag: [u8; 32],
}

impl AdmissionHello {
    pub(crate) fn from_wire(wire: &wire::AdmissionHello) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            group: field::name("group", &wire.group)?,
            kem: kem::set_from_wire("kem", wire.kem)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AdmissionHello {
        wire::AdmissionHello {
            nonce: self.nonce.to_vec(),
            group: self.group.as_str().into(),
            kem: kem::set_to_wire(self.kem),
        }
    }
}

impl<S: Suite> AdmissionChallenge<S> {
    pub(crate) fn from_wire(
        wire: wire::AdmissionChallenge,
        leader: Option<&DronePublicKey<S>>,
    ) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            leader: field::drone_expecting("leader", &wire.leader, leader)?,
            policy: field::bounded("policy", wire.policy, MAX_ADMISSION_POLICY_LEN)?,
            signature: field::signature("signature", &wire.signature)?,
            kem: wire.kem.as_ref().map(kem::term_from_wire).transpose()?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AdmissionChallenge {
        wire::AdmissionChallenge {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            leader: self.leader.encode(),
            policy: self.policy.clone(),
            signature: self.signature.encode(),
            kem: self.kem.map(kem::term_to_wire),
        }
    }
}

impl AdmissionProof {
    pub(crate) fn from_wire(wire: wire::AdmissionProof) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            // §A4.1: not decoded before the cookie is checked.
            step: field::bounded("step", wire.step, MAX_ADMISSION_STEP_LEN)?,
            kem: wire.kem.map(fresh_offer).transpose()?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AdmissionProof {
        wire::AdmissionProof {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            step: self.step.clone(),
            kem: self.kem.as_ref().map(KemOffer::to_wire),
        }
    }
}

impl AdmissionStep {
    pub(crate) fn from_wire(wire: wire::AdmissionStep) -> Result<Self, MessageError> {
        let lengths = KemSet::ALL.map(KemSet::ciphertext_len);
        if !wire.ciphertext.is_empty() && !lengths.contains(&wire.ciphertext.len()) {
            return Err(MessageError::Invalid("ciphertext"));
        }
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            step: field::at_most("step", wire.step, MAX_ADMISSION_STEP_LEN)?,
            ciphertext: wire.ciphertext,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AdmissionStep {
        wire::AdmissionStep {
            nonce: self.nonce.to_vec(),
            step: self.step.clone(),
            ciphertext: self.ciphertext.clone(),
        }
    }
}

/// The offer of a run: an encapsulation key, and not the name of a κ that both have.
fn fresh_offer(wire: wire::KemOffer) -> Result<KemOffer, MessageError> {
    match KemOffer::from_wire(wire)? {
        offer @ KemOffer::Key { .. } => Ok(offer),
        KemOffer::Ahead { .. } | KemOffer::Held { .. } => Err(MessageError::Invalid("kem")),
    }
}

impl AdmissionLeave {
    pub(crate) fn from_wire(wire: &wire::AdmissionLeave) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            slot: wire.slot,
            held: field::array("held", &wire.held)?,
            tag: field::array("tag", &wire.tag)?,
        })
    }

    pub(crate) fn to_wire(&self) -> wire::AdmissionLeave {
        wire::AdmissionLeave {
            group: self.group.as_str().into(),
            slot: self.slot,
            held: self.held.to_vec(),
            tag: self.tag.to_vec(),
        }
    }
}
