//! Forges messages without an identity: questions, headers with other entries, altered messages, forged
//! signatures, joins in others' names.
//!
//! They are sent over the connections of an edge: of a stranger, or of a member none of whose keys are used.

use std::sync::Arc;

use quiver_ainq::{
    DroneKeypair, DronePublicKey, Entry, EpochPart, Header, Identity, Label, Name, Role, SealedMessage,
    SecretValue, Suite,
};
use quiver_message::{
    CatchUpRequest, GroupMessage, JoinChallenge, JoinHello, JoinRequest, KemOffer, Message, Rekey,
    RevocationQuery, Source,
};
use quiver_testbed::HeaderReader;
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::{Adversary, issued};
use crate::rng_stream::{self, RngStream, below};
use crate::world::WorldKernel;
use crate::{Forgery, NodeId};

/// Number of forged messages that are known as such at a time.
const KEPT: usize = 512;
/// Number of past messages among which it chooses one to alter.
const RECENT: usize = 256;
/// Number of questions to leaders at once.
pub(crate) const QUESTIONS: u32 = 16;

impl Adversary {
    /// Returns true if this message is forged.
    pub(crate) fn is_forged(&self, payload: &Arc<[u8]>) -> bool {
        self.forged.iter().any(|forged| Arc::ptr_eq(forged, payload))
    }

    /// Sends forged messages.
    pub(super) fn forge<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, by: u32, what: Forgery, pick: u64) {
        let mut rng = rng_stream::generator(kernel.setup().seed ^ pick, RngStream::Adversary);
        match what {
            Forgery::RevocationQuery => {
                let bytes =
                    encoded(kernel, &Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
                self.publish(kernel, by, bytes);
                for _ in 0..QUESTIONS {
                    let bytes =
                        encoded(kernel, &Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 }));
                    self.ask_leaders(kernel, by, bytes);
                }
            }
            Forgery::KnownHeader => {
                let header = self.recorded_header(kernel, &mut rng, |_| true);
                self.publish_header(kernel, by, header, None);
            }
            Forgery::Entry => {
                let header = self.recorded_header(kernel, &mut rng, |header| {
                    header.core.kind == quiver_ainq::EpochKind::Open
                });
                let slot = u32::try_from(below(&mut rng, u64::from(kernel.edge_count()))).unwrap_or(0);
                let q = Some(below(&mut rng, 3));
                self.publish_header(
                    kernel,
                    by,
                    header,
                    Some(EpochPart::Entry(Entry { slot, q, wrap: [0; 32] })),
                );
            }
            Forgery::Altered => {
                if let Some(bytes) = self.altered(&mut rng) {
                    self.publish(kernel, by, bytes);
                }
            }
            Forgery::SignedMessage => {
                if let Some(message) = signed_message(kernel, &mut rng) {
                    let bytes = encoded(kernel, &Message::GroupMessage(message));
                    self.publish(kernel, by, bytes);
                }
            }
            Forgery::JoinRequest => self.forge_join(kernel, by, &mut rng),
            Forgery::CatchUps => {
                for slot in 0..QUESTIONS {
                    let request = catch_up_request(kernel, slot, &mut rng);
                    let bytes = encoded(kernel, &Message::CatchUpRequest(request));
                    self.ask_leaders(kernel, by, bytes);
                }
            }
        }
    }

    /// Notes who did not say it.
    fn forged(&mut self, bytes: Vec<u8>) -> Arc<[u8]> {
        let payload: Arc<[u8]> = bytes.into();
        if self.forged.len() == KEPT {
            self.forged.pop_front();
        }
        self.forged.push_back(Arc::clone(&payload));
        payload
    }

    fn publish<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, by: u32, bytes: Vec<u8>) {
        let payload = self.forged(bytes);
        let now = kernel.timeline.now();
        kernel.spread(now, NodeId::Edge(by), &payload);
    }

    fn ask_leaders<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, by: u32, bytes: Vec<u8>) {
        let payload = self.forged(bytes);
        let (index, now) = (kernel.index(), kernel.timeline.now());
        for leader in index.leaders().chain(index.relays()) {
            if kernel.connection(NodeId::Edge(by), leader).is_some() {
                kernel.transmit(now, NodeId::Edge(by), leader, &payload);
            }
        }
    }

    fn publish_header<S: Suite>(
        &mut self,
        kernel: &mut WorldKernel<S>,
        by: u32,
        header: Option<Header<S>>,
        part: Option<EpochPart>,
    ) {
        if let Some(header) = header {
            let bytes = encoded(kernel, &Message::Rekey(Rekey::new(header, part)));
            self.publish(kernel, by, bytes);
        }
    }

    /// A header that leaders sent: most often the newest, else one before it.
    fn recorded_header<S: Suite>(
        &self,
        kernel: &WorldKernel<S>,
        rng: &mut ChaCha8Rng,
        wanted: impl Fn(&Header<S>) -> bool,
    ) -> Option<Header<S>> {
        let deployment = kernel.fleet().deployment();
        let skipped = if rng.next_u32().is_multiple_of(4) { below(rng, 64) } else { 0 };
        let heard = self.recorded.iter().skip(self.recorded.len().saturating_sub(RECENT));
        let heard = heard.filter(|(from, _, _)| matches!(from, NodeId::Leader(_) | NodeId::Relay(_)));
        let mut reader = HeaderReader::new();
        let headers = heard.filter_map(|(_, _, payload)| match reader.decode(deployment, payload)? {
            Message::Rekey(rekey) => Some(rekey.header),
            Message::CatchUpReply(reply) => Some(reply.header),
            Message::Welcome(welcome) => Some(welcome.header),
            _ => None,
        });
        let headers: Vec<Header<S>> = headers.filter(wanted).collect();
        let skipped = usize::try_from(skipped).unwrap_or(0);
        headers.into_iter().rev().take(skipped + 1).last()
    }

    /// Copies a publication, with up to eight bits of its last third flipped.
    fn altered(&self, rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
        let published: Vec<&Arc<[u8]>> = self
            .recorded
            .iter()
            .rev()
            .take(RECENT)
            .filter(|it| it.1)
            .map(|(_, _, payload)| payload)
            .collect();
        let place = usize::try_from(below(rng, published.len() as u64)).ok()?;
        let mut bytes = published.get(place)?.to_vec();
        let first = bytes.len() - bytes.len() / 3;
        for _ in 0..1 + rng.next_u32() % 8 {
            let at = first + usize::try_from(below(rng, (bytes.len() - first) as u64)).unwrap_or(0);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (rng.next_u32() % 8);
            }
        }
        Some(bytes)
    }

    /// Asks for a challenge in a member's name.
    fn forge_join<S: Suite>(&mut self, kernel: &mut WorldKernel<S>, by: u32, rng: &mut ChaCha8Rng) {
        let Some(victim) = victim(kernel, rng) else { return };
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        let drone = victim.encode();
        self.joining.insert(nonce, drone.clone());
        let (group, kem) = (kernel.fleet().group().clone(), kernel.setup().kem.set());
        let bytes = encoded(kernel, &Message::JoinHello(JoinHello { group, drone, nonce, kem }));
        self.ask_leaders(kernel, by, bytes);
    }

    /// Returns true if a message is the challenge for a forged join; if so, sends the join.
    pub(in crate::world) fn takes_challenge<S: Suite>(
        &mut self,
        kernel: &mut WorldKernel<S>,
        to: NodeId,
        payload: &[u8],
    ) -> bool {
        let NodeId::Edge(by) = to else { return false };
        if self.joining.is_empty() {
            return false;
        }
        let Ok(Message::JoinChallenge(challenge)) =
            Message::<S>::decode(kernel.fleet().deployment(), payload)
        else {
            return false;
        };
        let Some(drone) = self.joining.get(&challenge.nonce).cloned() else { return false };
        if let Some(request) = forged_request(kernel, &challenge, drone) {
            let bytes = encoded(kernel, &Message::JoinRequest(request));
            self.ask_leaders(kernel, by, bytes);
        }
        true
    }
}

fn encoded<S: Suite>(kernel: &WorldKernel<S>, message: &Message<S>) -> Vec<u8> {
    message.encode(kernel.fleet().deployment())
}

/// A drone that was enrolled elsewhere, for signatures that are well-formed.
fn nobody<S: Suite>(kernel: &WorldKernel<S>, rng: &mut ChaCha8Rng) -> Option<DroneKeypair<S>> {
    let deployment = kernel.fleet().deployment();
    issued(deployment, "nobody", Role::Edge, rng, |identity: &Identity, value, rng| {
        kernel.fleet().master_key().issue(deployment, identity, value, rng)
    })
}

/// A member whose name is used.
fn victim<S: Suite>(kernel: &WorldKernel<S>, rng: &mut ChaCha8Rng) -> Option<DronePublicKey<S>> {
    let enrolled = |edge| Some((edge, kernel.edge(edge)?.keypair()?.public().clone()));
    let mut victims: Vec<(u32, DronePublicKey<S>)> = kernel.collect(
        (0..kernel.edge_count()).filter_map(enrolled).collect(),
        |writer, (edge, public)| {
            writer.u32(*edge).bytes(&public.encode());
        },
        |reader| Some((reader.u32()?, DronePublicKey::decode(reader.bytes()?).ok()?)),
    );
    victims.sort_by_key(|(edge, _)| *edge);
    let place = usize::try_from(below(rng, victims.len() as u64)).ok()?;
    victims.get(place).map(|(_, public)| public.clone())
}

fn signed_message<S: Suite>(kernel: &WorldKernel<S>, rng: &mut ChaCha8Rng) -> Option<GroupMessage> {
    let epochs = (0..kernel.leader_count()).filter_map(|ordinal| kernel.leader(ordinal)?.status().epoch);
    let mut frame = SealedMessage {
        slot: u32::try_from(below(rng, u64::from(kernel.edge_count()))).ok()?,
        boot_no: u32::MAX,
        salt: Default::default(),
        hedge: Default::default(),
        counter: 0,
        ciphertext: vec![0; 40],
    };
    rng.fill_bytes(&mut frame.salt);
    rng.fill_bytes(&mut frame.ciphertext);
    let signature =
        nobody(kernel, rng)?.sign(kernel.fleet().deployment(), Label::Command, &frame.ciphertext, rng);
    let source = Some(Source { drone: victim(kernel, rng)?.encode(), signature: signature.encode() });
    let channel = Name::new("talk").ok()?;
    let (group, epoch) = (kernel.fleet().group().clone(), epochs.max()?);
    Some(GroupMessage { group, epoch, channel, frame, source })
}

fn catch_up_request<S: Suite>(kernel: &WorldKernel<S>, slot: u32, rng: &mut ChaCha8Rng) -> CatchUpRequest {
    let (mut number, mut held, mut tag) = ([0; 16], [0; 32], [0; 32]);
    rng.fill_bytes(&mut number);
    rng.fill_bytes(&mut held);
    rng.fill_bytes(&mut tag);
    CatchUpRequest { group: kernel.fleet().group().clone(), slot, number, held, tag }
}

fn forged_request<S: Suite>(
    kernel: &WorldKernel<S>,
    challenge: &JoinChallenge<S>,
    drone: Vec<u8>,
) -> Option<JoinRequest> {
    let seed = u64::from_be_bytes(*challenge.nonce.first_chunk()?);
    let mut rng = rng_stream::generator(kernel.setup().seed ^ seed, RngStream::Adversary);
    let (nobody, point) = (nobody(kernel, &mut rng)?, SecretValue::<S>::generate(&mut rng));
    // Signed by nobody, so that it costs no encapsulation.
    let kem = challenge.kem.map(|term| {
        let mut key = vec![0; term.set().key_len()];
        rng.fill_bytes(&mut key);
        let set = term.set();
        if seed & 1 == 0 { KemOffer::Key { set, key } } else { KemOffer::Ahead { set, key } }
    });
    let mut sign =
        |label| nobody.sign(kernel.fleet().deployment(), label, &challenge.nonce, &mut rng).encode();
    let (spare_signature, signature) = (sign(Label::Spare), sign(Label::Join));
    Some(JoinRequest {
        group: kernel.fleet().group().clone(),
        drone,
        nonce: challenge.nonce,
        challenge: challenge.challenge,
        ephemeral: point.public().as_bytes().to_vec(),
        spare_q: 1,
        spare_point: point.public().as_bytes().to_vec(),
        spare_signature,
        signature,
        kem,
    })
}

/// Returns true if a message is proof against a leader.
pub(in crate::world) fn is_proof<S: Suite>(kernel: &WorldKernel<S>, payload: &[u8]) -> bool {
    matches!(Message::<S>::decode(kernel.fleet().deployment(), payload), Ok(Message::EquivocationProof(_)))
}
