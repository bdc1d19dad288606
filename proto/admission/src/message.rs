//! Messages between an anonymous drone and a leader that demands a policy for joining (docs/admission.md, A4).
//!
//! | message | from → to | answers | authenticated by |
//! |---|---|---|---|
//! | [`AdmissionHello`] | anonymous drone → leader | – | – |
//! | [`AdmissionChallenge`] | leader → drone | `AdmissionHello` | signature `admission`; the policy is signed by the KGC |
//! | [`AdmissionProof`] | drone → leader | `AdmissionChallenge` | challenge; the certification authority signed the key in it |
//! | [`AdmissionStep`] | both ways | `AdmissionProof` | the exchange: signature `abke`, then confirmations |
//! | [`AdmissionLeave`] | anonymous member → leader | – | tag under A, names the epoch held |
//!
//! The steps of the exchange are opaque here: they travel as bounded bytes. All of a run have the nonce of
//! its hello.

use alloc::vec::Vec;

use prost::bytes::Bytes;
use quiver_ainq::{DronePublicKey, KemTerm, Name, Signature, Slot, Suite};
use quiver_kem::KemSet;
use quiver_message::{
    COOKIE_LEN, Extension, ExtensionMessage, KemOffer, Message, MessageError, Nonce, canonical, field, kem,
};

/// The types generated from the `.proto` of `quiver-message`, unvalidated.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated from the .proto, which documents it")]
mod wire {
    pub(super) use quiver_message::wire::{KemOffer, KemSet, KemTerm};

    include!("wire.rs");
}

/// Bytes a policy that the KGC signed may have.
pub const MAX_ADMISSION_POLICY_LEN: usize = 16_896;
/// Bytes a step of the exchange may have: an offer to a credential of 800 bits, or 64 KiB of tables.
pub const MAX_ADMISSION_STEP_LEN: usize = 192 * 1024;

/// Numbers of the messages among the bodies of `Message`.
const HELLO: u32 = 50;
/// See [`HELLO`].
const CHALLENGE: u32 = 51;
/// See [`HELLO`].
const PROOF: u32 = 52;
/// See [`HELLO`].
const STEP: u32 = 53;
/// See [`HELLO`].
const LEAVE: u32 = 54;

/// Room in the bounds of contents for keys and lengths of fields, numbers and a nonce, in bytes, so that a field which is
/// too long is named.
const SMALL_FIELDS: usize = 128;
/// The longest encapsulation key and the longest ciphertext of ML-KEM-1024 are as long.
const MAX_KEM_LEN: usize = KemSet::MlKem1024.key_len();
const _: () = assert!(MAX_KEM_LEN == KemSet::MlKem1024.ciphertext_len());

/// A message of this feature.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::From)]
pub enum AdmissionMessage<S: Suite> {
    /// A question for the policy.
    #[debug("{_0:?}")]
    Hello(AdmissionHello),
    /// A challenge, with the policy.
    #[debug("{_0:?}")]
    Challenge(AdmissionChallenge<S>),
    /// The first step of the exchange.
    #[debug("{_0:?}")]
    Proof(AdmissionProof),
    /// Another step of the exchange.
    #[debug("{_0:?}")]
    Step(AdmissionStep),
    /// The end of a membership.
    #[debug("{_0:?}")]
    Leave(AdmissionLeave),
}

impl<S: Suite> Extension<S> for AdmissionMessage<S> {
    const KINDS: &'static [(u32, usize)] = &[
        (HELLO, Name::MAX_LEN + SMALL_FIELDS),
        (
            CHALLENGE,
            field::MAX_DRONE_LEN + MAX_ADMISSION_POLICY_LEN + field::MAX_SIGNATURE_LEN + SMALL_FIELDS,
        ),
        (PROOF, MAX_ADMISSION_STEP_LEN + MAX_KEM_LEN + SMALL_FIELDS),
        (STEP, MAX_ADMISSION_STEP_LEN + MAX_KEM_LEN + SMALL_FIELDS),
        (LEAVE, Name::MAX_LEN + 64 + SMALL_FIELDS),
    ];

    fn read(number: u32, content: &Bytes, leader: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
        match number {
            HELLO => AdmissionHello::from_wire(&canonical(content)?).map(Self::Hello),
            CHALLENGE => AdmissionChallenge::from_wire(canonical(content)?, leader).map(Self::Challenge),
            PROOF => AdmissionProof::from_wire(canonical(content)?).map(Self::Proof),
            STEP => AdmissionStep::from_wire(canonical(content)?).map(Self::Step),
            LEAVE => AdmissionLeave::from_wire(&canonical(content)?).map(Self::Leave),
            _ => Err(MessageError::NoBody),
        }
    }

    fn write(&self) -> ExtensionMessage {
        match self {
            Self::Hello(message) => ExtensionMessage::new(HELLO, &message.to_wire()),
            Self::Challenge(message) => ExtensionMessage::new(CHALLENGE, &message.to_wire()),
            Self::Proof(message) => ExtensionMessage::new(PROOF, &message.to_wire()),
            Self::Step(message) => ExtensionMessage::new(STEP, &message.to_wire()),
            Self::Leave(message) => ExtensionMessage::new(LEAVE, &message.to_wire()),
        }
    }
}

impl<S: Suite> From<AdmissionMessage<S>> for Message<S> {
    fn from(message: AdmissionMessage<S>) -> Self {
        Self::Extension(message.write())
    }
}

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
    fn from_wire(wire: &wire::AdmissionHello) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            group: field::name("group", &wire.group)?,
            kem: kem::set_from_wire("kem", wire.kem)?,
        })
    }

    fn to_wire(&self) -> wire::AdmissionHello {
        wire::AdmissionHello {
            nonce: self.nonce.to_vec(),
            group: self.group.as_str().into(),
            kem: kem::set_to_wire(self.kem),
        }
    }
}

impl<S: Suite> AdmissionChallenge<S> {
    fn from_wire(
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

    fn to_wire(&self) -> wire::AdmissionChallenge {
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
    fn from_wire(wire: wire::AdmissionProof) -> Result<Self, MessageError> {
        Ok(Self {
            nonce: field::array("nonce", &wire.nonce)?,
            cookie: field::array("cookie", &wire.cookie)?,
            // §A4.1: not decoded before the cookie is checked.
            step: field::bounded("step", wire.step, MAX_ADMISSION_STEP_LEN)?,
            kem: wire.kem.map(fresh_offer).transpose()?,
        })
    }

    fn to_wire(&self) -> wire::AdmissionProof {
        wire::AdmissionProof {
            nonce: self.nonce.to_vec(),
            cookie: self.cookie.to_vec(),
            step: self.step.clone(),
            kem: self.kem.as_ref().map(KemOffer::to_wire),
        }
    }
}

impl AdmissionStep {
    fn from_wire(wire: wire::AdmissionStep) -> Result<Self, MessageError> {
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

    fn to_wire(&self) -> wire::AdmissionStep {
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
    fn from_wire(wire: &wire::AdmissionLeave) -> Result<Self, MessageError> {
        Ok(Self {
            group: field::name("group", &wire.group)?,
            slot: wire.slot,
            held: field::array("held", &wire.held)?,
            tag: field::array("tag", &wire.tag)?,
        })
    }

    fn to_wire(&self) -> wire::AdmissionLeave {
        wire::AdmissionLeave {
            group: self.group.as_str().into(),
            slot: self.slot,
            held: self.held.to_vec(),
            tag: self.tag.to_vec(),
        }
    }
}
