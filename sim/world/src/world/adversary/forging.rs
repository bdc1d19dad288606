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

use super::{World, issued};
use crate::rng_stream::{self, RngStream, below};
use crate::{Forgery, NodeId};

/// Number of forged messages that are known as such at a time.
const KEPT: usize = 512;
/// Number of past messages among which it chooses one to alter.
const RECENT: usize = 256;
/// Number of questions to leaders at once.
pub(crate) const QUESTIONS: u32 = 16;

impl<S: Suite> World<S> {
    /// Returns true if this message is forged.
    pub(crate) fn is_forged(&self, payload: &Arc<[u8]>) -> bool {
        self.adversary.forged.iter().any(|forged| Arc::ptr_eq(forged, payload))
    }

    /// Sends forged messages.
    pub(in crate::world) fn forge(&mut self, by: u32, what: Forgery, pick: u64) {
        let mut rng = rng_stream::generator(self.setup.seed ^ pick, RngStream::Adversary);
        match what {
            Forgery::RevocationQuery => {
                self.publish(
                    by,
                    self.encoded(&Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 })),
                );
                for _ in 0..QUESTIONS {
                    self.ask_leaders(
                        by,
                        self.encoded(&Message::RevocationQuery(RevocationQuery { number: 0, max_len: 0 })),
                    );
                }
            }
            Forgery::KnownHeader => {
                let header = self.recorded_header(&mut rng, |_| true);
                self.publish_header(by, header, None);
            }
            Forgery::Entry => {
                let header =
                    self.recorded_header(&mut rng, |header| header.core.kind == quiver_ainq::EpochKind::Open);
                let slot = u32::try_from(below(&mut rng, u64::from(self.edge_count()))).unwrap_or(0);
                let q = Some(below(&mut rng, 3));
                self.publish_header(by, header, Some(EpochPart::Entry(Entry { slot, q, wrap: [0; 32] })));
            }
            Forgery::Altered => {
                if let Some(bytes) = self.altered(&mut rng) {
                    self.publish(by, bytes);
                }
            }
            Forgery::SignedMessage => {
                if let Some(message) = self.signed_message(&mut rng) {
                    self.publish(by, self.encoded(&Message::GroupMessage(message)));
                }
            }
            Forgery::JoinRequest => self.forge_join(by, &mut rng),
            Forgery::CatchUps => {
                for slot in 0..QUESTIONS {
                    let request = self.catch_up_request(slot, &mut rng);
                    self.ask_leaders(by, self.encoded(&Message::CatchUpRequest(request)));
                }
            }
        }
    }

    fn encoded(&self, message: &Message<S>) -> Vec<u8> {
        message.encode(self.fleet.deployment())
    }

    /// Notes who did not say it.
    fn forged(&mut self, bytes: Vec<u8>) -> Arc<[u8]> {
        let payload: Arc<[u8]> = bytes.into();
        if self.adversary.forged.len() == KEPT {
            self.adversary.forged.pop_front();
        }
        self.adversary.forged.push_back(Arc::clone(&payload));
        payload
    }

    fn publish(&mut self, by: u32, bytes: Vec<u8>) {
        let payload = self.forged(bytes);
        self.spread(self.now, NodeId::Edge(by), &payload);
    }

    fn ask_leaders(&mut self, by: u32, bytes: Vec<u8>) {
        let payload = self.forged(bytes);
        for leader in self.nodes.leaders().chain(self.nodes.relays()) {
            if self.links.connection(NodeId::Edge(by), leader).is_some() {
                self.transmit(self.now, NodeId::Edge(by), leader, &payload, false);
            }
        }
    }

    fn publish_header(&mut self, by: u32, header: Option<Header<S>>, part: Option<EpochPart>) {
        if let Some(header) = header {
            self.publish(by, self.encoded(&Message::Rekey(Rekey::new(header, part))));
        }
    }

    /// A header that leaders sent: most often the newest, else one before it.
    fn recorded_header(
        &self,
        rng: &mut ChaCha8Rng,
        wanted: impl Fn(&Header<S>) -> bool,
    ) -> Option<Header<S>> {
        let deployment = self.fleet.deployment();
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

    /// A drone that was enrolled elsewhere, for signatures that are well-formed.
    fn nobody(&self, rng: &mut ChaCha8Rng) -> Option<DroneKeypair<S>> {
        let deployment = self.fleet.deployment();
        issued(deployment, "nobody", Role::Edge, rng, |identity: &Identity, value, rng| {
            self.fleet.master_key().issue(deployment, identity, value, rng)
        })
    }

    /// A member whose name is used.
    fn victim(&self, rng: &mut ChaCha8Rng) -> Option<DronePublicKey<S>> {
        let enrolled = |edge| Some((edge, self.edge(edge)?.keypair()?.public().clone()));
        let mut victims: Vec<(u32, DronePublicKey<S>)> = self.collect(
            (0..self.edge_count()).filter_map(enrolled).collect(),
            |writer, (edge, public)| {
                writer.u32(*edge).bytes(&public.encode());
            },
            |reader| Some((reader.u32()?, DronePublicKey::decode(reader.bytes()?).ok()?)),
        );
        victims.sort_by_key(|(edge, _)| *edge);
        let place = usize::try_from(below(rng, victims.len() as u64)).ok()?;
        victims.get(place).map(|(_, public)| public.clone())
    }

    fn signed_message(&self, rng: &mut ChaCha8Rng) -> Option<GroupMessage> {
        let epochs = (0..self.nodes.leaders).filter_map(|ordinal| self.leader(ordinal)?.status().epoch);
        let mut frame = SealedMessage {
            slot: u32::try_from(below(rng, u64::from(self.edge_count()))).ok()?,
            boot_no: u32::MAX,
            salt: Default::default(),
            hedge: Default::default(),
            counter: 0,
            ciphertext: vec![0; 40],
        };
        rng.fill_bytes(&mut frame.salt);
        rng.fill_bytes(&mut frame.ciphertext);
        let signature =
            self.nobody(rng)?.sign(self.fleet.deployment(), Label::Command, &frame.ciphertext, rng);
        let source = Some(Source { drone: self.victim(rng)?.encode(), signature: signature.encode() });
        let channel = Name::new("talk").ok()?;
        let (group, epoch) = (self.fleet.group().clone(), epochs.max()?);
        Some(GroupMessage { group, epoch, channel, frame, source })
    }

    fn catch_up_request(&self, slot: u32, rng: &mut ChaCha8Rng) -> CatchUpRequest {
        let (mut number, mut held, mut tag) = ([0; 16], [0; 32], [0; 32]);
        rng.fill_bytes(&mut number);
        rng.fill_bytes(&mut held);
        rng.fill_bytes(&mut tag);
        CatchUpRequest { group: self.fleet.group().clone(), slot, number, held, tag }
    }

    /// Asks for a challenge in a member's name.
    fn forge_join(&mut self, by: u32, rng: &mut ChaCha8Rng) {
        let Some(victim) = self.victim(rng) else { return };
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        let drone = victim.encode();
        self.adversary.joining.insert(nonce, drone.clone());
        let hello = JoinHello { group: self.fleet.group().clone(), drone, nonce, kem: self.setup.kem.set() };
        self.ask_leaders(by, self.encoded(&Message::JoinHello(hello)));
    }

    /// Returns true if a message is the challenge for a forged join; if so, sends the join.
    pub(in crate::world) fn is_for_forger(&mut self, to: NodeId, payload: &[u8]) -> bool {
        let NodeId::Edge(by) = to else { return false };
        if self.adversary.joining.is_empty() {
            return false;
        }
        let Ok(Message::JoinChallenge(challenge)) = Message::<S>::decode(self.fleet.deployment(), payload)
        else {
            return false;
        };
        let Some(drone) = self.adversary.joining.get(&challenge.nonce).cloned() else { return false };
        if let Some(request) = self.forged_request(&challenge, drone) {
            self.ask_leaders(by, self.encoded(&Message::JoinRequest(request)));
        }
        true
    }

    fn forged_request(&self, challenge: &JoinChallenge<S>, drone: Vec<u8>) -> Option<JoinRequest> {
        let seed = u64::from_be_bytes(*challenge.nonce.first_chunk()?);
        let mut rng = rng_stream::generator(self.setup.seed ^ seed, RngStream::Adversary);
        let (nobody, point) = (self.nobody(&mut rng)?, SecretValue::<S>::generate(&mut rng));
        // Signed by nobody, so that it costs no encapsulation.
        let kem = challenge.kem.map(|term| {
            let mut key = vec![0; term.set().key_len()];
            rng.fill_bytes(&mut key);
            let set = term.set();
            if seed & 1 == 0 { KemOffer::Key { set, key } } else { KemOffer::Ahead { set, key } }
        });
        let mut sign =
            |label| nobody.sign(self.fleet.deployment(), label, &challenge.nonce, &mut rng).encode();
        let (spare_signature, signature) = (sign(Label::Spare), sign(Label::Join));
        Some(JoinRequest {
            group: self.fleet.group().clone(),
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
    pub(in crate::world) fn is_proof(&self, payload: &[u8]) -> bool {
        matches!(Message::<S>::decode(self.fleet.deployment(), payload), Ok(Message::EquivocationProof(_)))
    }
}
