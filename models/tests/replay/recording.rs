//! Steps of a recorded run, and the facts beside them from which its keys are derived.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use quiver_ainq::{Deployment, Epoch, Name, Slot, StrategyKind, Suite, VerifiedAuthority};
use quiver_crypto::Secret;
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_kem::{KemSet, encapsulate};
use quiver_message::{KemOffer, Message};
use quiver_testbed::CompactRng;
use rand_chacha::rand_core::RngCore;

use crate::rules::AdmissionMessage;
use crate::suite::Overheard as S;

/// Name of the group.
pub(crate) const GROUP: &str = "alpha";
pub(crate) type Node = &'static str;
/// Bytes of a leader's random numbers among which its KEM's are.
const DRAWN: usize = 1 << 12;

/// Nodes of a group, and what they do beside joining and following.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Leaders by their ordinal.
    pub(crate) leaders: Vec<Node>,
    /// KGCs by their number less one.
    pub(crate) kgcs: Vec<Node>,
    /// KGCs that issue together.
    pub(crate) threshold: usize,
    pub(crate) strategy: StrategyKind,
    /// True if pairwise secrets have a second factor.
    pub(crate) kem: bool,
    /// True if drones join by a policy, without their names.
    pub(crate) anonymous: bool,
    /// The leader that has two keys under one serial and opens each of its terms under both.
    pub(crate) two_keys: Option<Node>,
    /// Nodes that have another's token, with that one.
    pub(crate) twins: BTreeMap<Node, Node>,
}

impl Group {
    pub(crate) fn leads(&self, node: Node) -> bool {
        self.leaders.contains(&node)
    }

    /// The name that stands in a node's token.
    pub(crate) fn name_of(&self, node: Node) -> Node {
        self.twins.get(node).copied().unwrap_or(node)
    }

    /// The leader that opened the term of an epoch.
    pub(crate) fn opener(&self, epoch: Epoch) -> Option<Node> {
        self.leaders.get(usize::from(epoch.ordinal())).copied()
    }
}

/// A step of a run.
#[derive(Clone)]
pub(crate) enum Step {
    /// A node was switched on.
    Started(Node),
    /// A message left.
    Sent { from: Node, to: Node, bytes: Vec<u8> },
    /// A node was handed a message over a link whose other end did not send it: repeated, forged, or altered
    /// on its way. Names the node that did send it, elsewhere or before, if there is one.
    Injected { to: Node, over: Node, of: Option<Node>, bytes: Vec<u8> },
    /// A hostile relay handed a message to a drone, as the leader's: it is, for this drone and now, or nothing comes of it.
    Handed { from: Node, to: Node, bytes: Vec<u8> },
    /// A node has its key.
    Enrolled(Node),
    /// The leader was told to evict a drone.
    Evicts(Node),
    /// The clock of a leader shows that the period of credentials with these slot keys is over.
    PeriodOver { at: Node, slots: [u8; 32] },
    /// A node has proof that the leader of an epoch made it twice.
    Convicted { at: Node, epoch: Epoch },
    /// An edge uses the key of an epoch.
    Activated { at: Node, epoch: Epoch, digest: [u8; 32], slot: Slot },
    /// A node received a message of the group.
    Received { at: Node, channel: Name, data: Vec<u8> },
    /// All members have acknowledged an epoch.
    Delivered { epoch: Epoch, members: usize },
    /// A member sent a datagram, which all others have.
    Datagram { from: Node, bytes: Vec<u8> },
    /// A member received a payload of a datagram from a slot, and knows the signer if it was signed.
    Heard { at: Node, slot: Slot, signer: Option<Name>, data: Vec<u8> },
}

/// Length and first bytes of a string, for errors that people read.
struct Start<'a>(&'a [u8]);

impl fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = self;
        write!(f, "{} bytes ", bytes.len())?;
        bytes.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(if bytes.len() > 8 { "…" } else { "" })
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(node) => write!(f, "{node} starts"),
            Self::Sent { from, to, bytes } => write!(f, "{from} to {to}, {:?}", Start(bytes)),
            Self::Injected { to, over, of, bytes } => {
                write!(f, "the adversary to {to} over {over}, a message of {of:?}, {:?}", Start(bytes))
            }
            Self::Handed { from, to, bytes } => {
                write!(f, "a hostile relay of {from} to {to}, {:?}", Start(bytes))
            }
            Self::Enrolled(node) => write!(f, "{node} has its key"),
            Self::Evicts(node) => write!(f, "the leader is told to evict {node}"),
            Self::PeriodOver { at, slots } => {
                write!(f, "to {at} the period is over of slot keys with {:?}", Start(slots))
            }
            Self::Convicted { at, epoch } => write!(f, "{at} has proof that {epoch:?} was made twice"),
            Self::Activated { at, epoch, digest, slot } => {
                write!(f, "{at} uses {epoch:?} in slot {slot}, D of {:?}", Start(digest))
            }
            Self::Received { at, channel, data } => {
                write!(f, "{at} receives {:?} on {channel:?}", Start(data))
            }
            Self::Delivered { epoch, members } => write!(f, "{members} members have {epoch:?}"),
            Self::Datagram { from, bytes } => write!(f, "{from} to all, {:?}", Start(bytes)),
            Self::Heard { at, slot, signer, data } => {
                write!(f, "{at} hears {:?} from slot {slot}, signed by {signer:?}", Start(data))
            }
        }
    }
}

/// The authority that certifies fields of drones, and the fingerprints of its slot keys: each period has others.
#[derive(Clone)]
pub(crate) struct Certification {
    pub(crate) authority: VerifiedAuthority<S>,
    pub(crate) slots: BTreeSet<[u8; 32]>,
}

/// A run: its steps, and what its machines agreed on.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) group: Group,
    pub(crate) deployment: Deployment<S>,
    pub(crate) steps: Vec<Step>,
    /// Pairwise secrets that its machines computed.
    pub(crate) secrets: BTreeSet<Vec<u8>>,
    /// Products of a scalar and a point, in the order in which they were computed.
    pub(crate) products: Vec<[u8; 32]>,
    /// Shared secrets of a KEM by their ciphertexts.
    pub(crate) shared: BTreeMap<Vec<u8>, [u8; 32]>,
    /// Scalars of drones that apply without a name, by A_C.
    pub(crate) ephemeral: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) certification: Option<Certification>,
    /// Epochs with which leaders opened terms.
    pub(crate) opened: BTreeSet<Epoch>,
    /// Epochs that leaders made while nobody was there to be sent them, before they made the next.
    pub(crate) silent: BTreeSet<Epoch>,
    /// Messages that KGCs sent while they lied.
    pub(crate) lies: BTreeSet<Vec<u8>>,
    /// Records that leaders have written.
    pub(crate) written: Vec<Vec<u8>>,
}

/// Epochs that leaders made, and those of which they sent a header to anybody.
#[derive(Clone, Default)]
pub(crate) struct Epochs {
    made: BTreeSet<Epoch>,
    /// Epochs in the order in which their first header was sent.
    sent: Vec<Epoch>,
    /// Epochs of short headers, with the number of headers that were sent before.
    short: Vec<(Epoch, usize)>,
    /// Epochs under whose keys somebody spoke before a header was sent: their leader, to nobody.
    spoken: BTreeSet<Epoch>,
}

impl Epochs {
    pub(crate) fn told_by_leader(&mut self, event: &LeaderEvent) {
        if let LeaderEvent::EpochActivated { epoch, .. } = event {
            self.made.insert(*epoch);
        }
    }

    pub(crate) fn see(&mut self, message: &Message<S>) {
        let header = match message {
            Message::Rekey(rekey) => &rekey.header,
            Message::Welcome(welcome) => &welcome.header,
            Message::CatchUpReply(answer) => &answer.header,
            Message::Replica(copy) => &copy.header,
            Message::GroupMessage(message) => {
                if !self.sent.contains(&message.epoch) {
                    self.spoken.insert(message.epoch);
                }
                return;
            }
            Message::ShortRekey(short) => return self.short.push((short.header.epoch, self.sent.len())),
            _ => return,
        };
        if !self.sent.contains(&header.core.epoch) {
            self.sent.push(header.core.epoch);
        }
    }

    /// Epochs with which terms opened.
    pub(crate) fn opened(&self) -> BTreeSet<Epoch> {
        self.made.iter().filter(|epoch| epoch.counter == 1).copied().collect()
    }

    /// Epochs that nobody was sent, or after a later one of the term. A leader that dies before it says that it
    /// made one goes on from there.
    pub(crate) fn silent(&self) -> BTreeSet<Epoch> {
        let before = |epoch: Epoch| (1..epoch.counter).map(move |counter| Epoch { counter, ..epoch });
        let whole = self.sent.iter().enumerate().map(|(place, epoch)| (*epoch, place));
        let skipped = whole.chain(self.short.iter().copied()).flat_map(|(epoch, place)| {
            before(epoch).filter(move |before| !self.sent[..place].contains(before))
        });
        let unsent = self.made.iter().filter(|epoch| !self.sent.contains(epoch)).copied();
        unsent.chain(skipped).chain(self.spoken.iter().copied()).collect()
    }
}

/// Exchanges of a KEM, of which the secret is computed once more from the random numbers that the leader
/// drew, and keys A_C of drones without a name, from those that they drew.
#[derive(Clone, Default)]
pub(crate) struct Exchanges {
    /// Encapsulation keys by the nonces of the requests.
    keys: BTreeMap<Vec<u8>, (KemSet, Vec<u8>)>,
    /// Generators of the leaders, and of drones without a name, before what they did last.
    pub(crate) before: BTreeMap<Node, CompactRng>,
    pub(crate) shared: BTreeMap<Vec<u8>, [u8; 32]>,
    pub(crate) ephemeral: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Exchanges {
    /// The scalar of A_C, from the random numbers that the drone drew.
    fn draw(&mut self, from: Node, a_c: &[u8]) {
        let mut drawn = vec![0; DRAWN];
        self.before[from].clone().wake().fill_bytes(&mut drawn);
        let found = (0..DRAWN - 64).step_by(4).find_map(|place| {
            let scalar = S::scalar_from_wide(drawn[place..place + 64].try_into().ok()?);
            let point = S::mul_base(&scalar);
            (S::encode(&point)[..] == *a_c).then_some(scalar)
        });
        let scalar = found.expect("the drone drew what it shows");
        self.ephemeral.insert(a_c.to_vec(), S::scalar_encode(&scalar).to_vec());
    }

    pub(crate) fn see(&mut self, from: Node, message: &Message<S>) {
        match message {
            Message::JoinRequest(request) => {
                if let Some(KemOffer::Key { set, key } | KemOffer::Ahead { set, key }) = &request.kem {
                    self.keys.insert(request.nonce.to_vec(), (*set, key.clone()));
                }
            }
            message @ Message::Extension(_) => {
                let Some(Ok(AdmissionMessage::Proof(proof))) = message.extension() else { return };
                if let Some(a_c) = proof.step.get(1..33).filter(|a_c| !self.ephemeral.contains_key(*a_c)) {
                    self.draw(from, a_c);
                }
            }
            Message::JoinCiphertext(answer) if !self.shared.contains_key(&answer.ciphertext) => {
                let (set, key) = &self.keys[&answer.nonce[..]];
                let mut drawn = vec![0; DRAWN];
                self.before[from].clone().wake().fill_bytes(&mut drawn);
                let found = (0..DRAWN - 32).step_by(4).find_map(|place| {
                    let message = Secret::try_from(&drawn[place..place + 32]).ok()?;
                    let (ciphertext, shared) = encapsulate(*set, key, &message).ok()?;
                    (ciphertext == answer.ciphertext).then_some(shared)
                });
                let shared = found.expect("the leader drew what it encapsulated");
                self.shared.insert(answer.ciphertext.clone(), *shared.expose());
            }
            _ => {}
        }
    }
}

pub(crate) fn told_by_leader(at: Node, event: LeaderEvent) -> Option<Step> {
    match event {
        LeaderEvent::Enrolled { .. } => Some(Step::Enrolled(at)),
        LeaderEvent::Equivocation { epoch, .. } => Some(Step::Convicted { at, epoch }),
        LeaderEvent::Delivered { epoch, members } => Some(Step::Delivered { epoch, members }),
        LeaderEvent::Message { channel, data, .. } => {
            Some(Step::Received { at, channel, data: data.to_vec() })
        }
        _ => None,
    }
}

pub(crate) fn told_by_edge(at: Node, event: EdgeEvent) -> Option<Step> {
    match event {
        EdgeEvent::Enrolled { .. } => Some(Step::Enrolled(at)),
        EdgeEvent::Equivocation { epoch, .. } => Some(Step::Convicted { at, epoch }),
        EdgeEvent::KeyActivated { epoch, digest, slot } => Some(Step::Activated { at, epoch, digest, slot }),
        EdgeEvent::Message { channel, data, .. } => Some(Step::Received { at, channel, data: data.to_vec() }),
        _ => None,
    }
}
