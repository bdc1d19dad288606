//! Enrolment with a quorum: the drone asks all KGCs at once and is the coordinator of their signature.
//!
//! ```text
//! to each KGC    hello → cookie → request → commitment
//! the first t    package → share, sealed to the drone
//! ```
//!
//! An *attempt* asks every KGC that is connected and not set aside. The first t commitments under one version
//! of the shares make a *round*. A KGC that then sends a wrong share, refuses, disconnects or is silent is
//! set aside, and the next attempt follows at once with the others, as long as these are enough. Once they
//! are not, all get another chance after a while: the reason to set a KGC aside is not proof against it.

mod contact;
mod round;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::enrolment::MAX_KGCS;
use quiver_ainq::{Deployment, DroneKeypair, Error, KgcId, Label, QuorumStatement, Suite};
use quiver_machine::{Backoff, Now, Peer};
use quiver_message::{EnrolHello, Message, Refusal};
use rand_core::CryptoRngCore;

use self::contact::{Contact, ContactStage, SharesStatement};
use self::round::{Culprits, SigningRound};
use crate::Kgcs;
use crate::client::{EnrolmentStep, EnrolmentTrouble, KgcSelection, SharedRequest, Steps};
use crate::threshold::{
    EnrolCommitment, EnrolDone, EnrolShare, EnrolmentMessage, QuorumSuite, ShareVerifier, SharesReader, frost,
};

/// Statements of the quorum that are remembered: more than one only while shares are being refreshed.
const MAX_KNOWN: usize = 8;

/// Number of times that the package is repeated to the silent ones of a round.
const MAX_REPEATS: u8 = 3;

/// Longest time that a KGC that refuses may make a drone wait.
const LONGEST_REST: Duration = Duration::from_secs(240);

impl<S: QuorumSuite> Kgcs<S> {
    /// The KGCs of a quorum, 64 at most; a single KGC if there is one id.
    #[must_use]
    pub fn quorum(ids: Vec<KgcId>) -> Self {
        match ids.as_slice() {
            [] => Self::single(),
            [id] => Self::one(*id),
            _ => Self {
                ids,
                select: |backoff| Box::new(Coordinator::new(backoff)),
                notify: |deployment, keypair, rng| Some(done(deployment, keypair, rng)),
            },
        }
    }
}

/// An enrolled drone's message to the KGCs of a quorum: it holds a key, so no more shares are to be made for
/// its token.
fn done<S: Suite>(
    deployment: &Deployment<S>,
    keypair: &DroneKeypair<S>,
    rng: &mut dyn CryptoRngCore,
) -> Message<S> {
    let public = keypair.public();
    // §3.9: signed `enrolled` over the serial, under y: only a holder of a key can sign that.
    let signature = keypair.sign(deployment, Label::Enrolled, &public.identity.serial, rng);
    let done = EnrolDone { drone: public.encode(), signature: signature.encode() };
    EnrolmentMessage::Done(done).into()
}

/// All KGCs of a quorum, as far as they are connected.
#[derive(Debug)]
struct Coordinator<S: Suite> {
    read: SharesReader<S>,
    contacts: Vec<Contact>,
    known: Vec<SharesStatement<S>>,
    round: Option<SigningRound<S>>,
    deadline: Option<Duration>,
    backoff: Backoff,
    /// True if too few KGCs were reported in this attempt already.
    reported_too_few: bool,
    reported_refused: bool,
}

impl<S: Suite> Coordinator<S> {
    fn new(backoff: Backoff) -> Self
    where
        S: QuorumSuite,
    {
        Self {
            read: frost::read::<S>,
            contacts: Vec::new(),
            known: Vec::new(),
            round: None,
            deadline: None,
            backoff,
            reported_too_few: false,
            reported_refused: false,
        }
    }

    /// Sends the package again to KGCs whose shares have not come: a package may get lost, or a share, and
    /// another round would use up one more of the few that a KGC contributes to.
    fn repeat(&mut self, shared: &SharedRequest<S>, now: Now) -> Steps<S> {
        let slice = self.slice();
        let Some(round) = self.round.as_mut().filter(|round| round.repeats < MAX_REPEATS) else {
            return Vec::new();
        };
        // §3.9: the same shares are asked for four times in a round, before another round opens.
        round.repeats += 1;
        self.deadline = Some(now.monotonic + slice);
        let order = round.order(shared);
        let send = |(_, peer)| EnrolmentStep::Send(peer, EnrolmentMessage::Signing(order.clone()).into());
        round.silent().map(send).collect()
    }

    /// The part of a round's time after which the package is repeated to silent KGCs.
    fn slice(&self) -> Duration {
        self.backoff.first() / (u32::from(MAX_REPEATS) + 1)
    }

    fn commitment(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        (now, from): (Now, Peer),
        message: &EnrolCommitment,
    ) -> Steps<S> {
        // §3.6: only from a KGC that was asked, and for this very request.
        let asked = self.contact(from).is_some_and(|contact| contact.stage == ContactStage::Asked);
        if !asked || message.request_digest != shared.digest {
            return Vec::new();
        }
        match self.check_commitment(shared, deployment, message) {
            Ok(stage) => {
                if let Some(contact) = self.contact(from) {
                    contact.stage = stage;
                }
                self.begin_round(shared, deployment, now)
            }
            Err(error) => {
                self.set_aside(from);
                alloc::vec![EnrolmentStep::Wrong(from, error.into())]
            }
        }
    }

    fn check_commitment(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        message: &EnrolCommitment,
    ) -> Result<ContactStage, Error> {
        // §3.6: a KGC that the request names.
        if !kgcs(shared).contains(&message.kgc) {
            return Err(Error::WrongKgc);
        }
        // §3.6: a statement that was verified before need not be verified again.
        let known = match self.known.iter().find(|known| known.statement == message.statement) {
            Some(known) => known,
            None => self.learn(deployment, &message.statement)?,
        };
        // §3.6: j has a share under this statement, and D_j ‖ E_j are points.
        let checked = known.verifier.check_commitment(message.kgc, &message.commitment);
        checked.map_err(|_| Error::Malformed("commitment"))?;
        let (kgc, commitment, shares) = (message.kgc, message.commitment.clone(), known.shares);
        Ok(ContactStage::Committed { kgc, commitment, shares })
    }

    /// Takes the quorum's statement about its shares.
    fn learn(&mut self, deployment: &Deployment<S>, statement: &[u8]) -> Result<&SharesStatement<S>, Error> {
        // §3.6: the statement of the quorum is signed under P_pub, which the drone pins.
        let verified = QuorumStatement::<S>::decode(statement)?.verify(deployment)?;
        let verifier = (self.read)(&verified).map_err(|_| Error::Malformed("public shares"))?;
        if self.known.len() >= MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(SharesStatement::new(statement, &verified, Arc::from(verifier)));
        self.known.last().ok_or(Error::Exhausted)
    }

    /// Starts a round if there is none and t KGCs have committed themselves under one version of the shares.
    fn begin_round(&mut self, shared: &SharedRequest<S>, deployment: &Deployment<S>, now: Now) -> Steps<S> {
        if self.round.is_some() {
            return Vec::new();
        }
        // §3.6: t of them under one version of the shares.
        let Some((verifier, signers)) = contact::signers(&self.known, &self.contacts) else {
            return Vec::new();
        };
        // §3.7: the message is the drone's own, built from its request.
        let message = shared.pending.identity_statement(deployment);
        let Some(round) = SigningRound::new(verifier, message, signers) else { return Vec::new() };
        let order = round.order(shared);
        let send = |peer: &Peer| EnrolmentStep::Send(*peer, EnrolmentMessage::Signing(order.clone()).into());
        let steps = round.peers().iter().map(send).collect();
        for contact in self.contacts.iter_mut().filter(|contact| round.peers().contains(&contact.peer)) {
            contact.stage = ContactStage::Signing;
        }
        self.round = Some(round);
        self.deadline = Some(now.monotonic + self.slice());
        steps
    }

    fn share(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        (now, from): (Now, Peer),
        message: &EnrolShare,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        // §3.6: H(package) names the round: a share of an earlier one is of no use.
        let Some(round) = self.round.as_mut().filter(|round| *round.package() == message.package_digest)
        else {
            return Vec::new();
        };
        let Some(kgc) = round.due(from) else { return Vec::new() };
        let culprits = match round.take(&shared.pending, kgc, message) {
            Ok(false) => return Vec::new(),
            Err(_) => alloc::vec![(kgc, from)],
            Ok(true) => {
                let accept = |partial| shared.pending.accept(deployment, partial);
                // §3.10: FROST combines the shares, and names those that are wrong.
                match self.round.take().map(|round| round.finish(accept)) {
                    Some(Ok(keypair)) => return alloc::vec![EnrolmentStep::Enrolled(keypair)],
                    Some(Err(culprits)) => culprits,
                    None => return Vec::new(),
                }
            }
        };
        // §3.10: the drone excludes their senders and begins again at once with the others.
        let mut steps: Steps<S> = Vec::new();
        for (kgc, peer) in culprits {
            self.set_aside(peer);
            steps.push(EnrolmentStep::Trouble(EnrolmentTrouble::WrongShare { kgc, peer }));
        }
        steps.extend(self.resume(shared, now, rng));
        steps
    }

    /// A refusal is not authenticated: it sets aside the KGC of the connection, and no more.
    fn refusal(
        &mut self,
        shared: &SharedRequest<S>,
        (now, from): (Now, Peer),
        message: &Refusal,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        let Some(contact) = self.contact(from) else { return Vec::new() };
        // §3.1: a refusal refers to the nonce of the hello, or to H(request).
        let greeted = matches!(&contact.stage, ContactStage::Greeted(nonce) if message.reference == *nonce);
        let answered = matches!(contact.stage, ContactStage::Idle | ContactStage::Greeted(_));
        if !greeted && (answered || message.reference != shared.digest) {
            return Vec::new();
        }
        // §3.5: a refusal is not authenticated: it slows the drone down, and no more.
        contact.refused = Some(message.reason);
        contact.rests_until = now.monotonic + message.retry_after.min(LONGEST_REST);
        self.set_aside(from);
        let trouble = EnrolmentTrouble::Refused { peer: from, reason: message.reason };
        let mut steps = alloc::vec![EnrolmentStep::Trouble(trouble)];
        steps.extend(self.hopeless(shared));
        if self.round.as_ref().is_some_and(|round| round.due(from).is_some()) {
            steps.extend(self.resume(shared, now, rng));
        }
        steps
    }

    /// The last refusal, if so many KGCs refuse for good that the others are too few.
    fn hopeless(&mut self, shared: &SharedRequest<S>) -> Option<EnrolmentStep<S>> {
        let final_words = self.contacts.iter().filter_map(|contact| contact.refused);
        let final_words: Vec<_> = final_words.filter(|reason| !reason.is_transient()).collect();
        // §3.10: reported once, when fewer than t are left.
        let others = kgcs(shared).len().saturating_sub(final_words.len());
        let hopeless = others < self.needed(shared) && !self.reported_refused;
        self.reported_refused |= hopeless;
        final_words.last().copied().filter(|_| hopeless).map(EnrolmentStep::Refused)
    }

    /// The round came to nothing: at once another attempt without those set aside, if the others are enough.
    fn resume(&mut self, shared: &SharedRequest<S>, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        let spent = self.round.take();
        // §3.10: at once, if those that are left are t.
        if self.usable(now) >= self.needed(shared) {
            return self.attempt(now, rng);
        }
        if let Some(round) = spent {
            let signed = |contact: &&mut Contact| round.peers().contains(&contact.peer);
            self.contacts.iter_mut().filter(signed).for_each(|contact| contact.stage = ContactStage::Idle);
        }
        // §3.10: otherwise reports who answered, and waits.
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        self.too_few(shared).into_iter().collect()
    }

    /// Begins an attempt, with a fresh nonce, with all KGCs that are not set aside.
    fn attempt(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        self.round = None;
        self.reported_too_few = false;
        self.deadline = Some(now.monotonic + self.backoff.next(rng));
        let usable = self.contacts.iter_mut().filter(|contact| contact.is_usable(now));
        usable.map(|contact| greet(contact, rng)).collect()
    }

    fn too_few(&mut self, shared: &SharedRequest<S>) -> Option<EnrolmentStep<S>> {
        if self.reported_too_few {
            return None;
        }
        self.reported_too_few = true;
        let answered = contact::answered(&self.contacts);
        let missing = kgcs(shared).iter().copied().filter(|kgc| !answered.contains(kgc)).collect();
        let threshold = self.threshold();
        // Enough have answered: then it is their shares that keep them from acting together.
        if let Some(threshold) = threshold.filter(|threshold| answered.len() >= usize::from(*threshold)) {
            let shares = contact::versions(&self.known, &self.contacts);
            if shares.iter().any(|(_, version)| shares.first().is_some_and(|(_, first)| first != version)) {
                return Some(EnrolmentStep::Trouble(EnrolmentTrouble::SharesDiffer { shares, threshold }));
            }
        }
        Some(EnrolmentStep::Trouble(EnrolmentTrouble::TooFew { answered, missing, threshold }))
    }

    fn forgive(&mut self) {
        self.reported_refused = false;
        for contact in &mut self.contacts {
            contact.aside = false;
            contact.refused = None;
        }
    }

    fn set_aside(&mut self, peer: Peer) {
        if let Some(contact) = self.contact(peer) {
            contact.aside = true;
            contact.stage = ContactStage::Idle;
        }
    }

    fn contact(&mut self, peer: Peer) -> Option<&mut Contact> {
        self.contacts.iter_mut().find(|contact| contact.peer == peer)
    }

    fn usable(&self, now: Now) -> usize {
        self.contacts.iter().filter(|contact| contact.is_usable(now)).count()
    }

    fn threshold(&self) -> Option<u16> {
        self.known.iter().max_by_key(|known| known.verifier.version()).map(|known| known.verifier.threshold())
    }

    /// t, or its lower bound as long as it is unknown.
    fn needed(&self, shared: &SharedRequest<S>) -> usize {
        // §3.6: 2t > n.
        self.threshold().map_or(kgcs(shared).len() / 2 + 1, usize::from)
    }
}

impl<S: Suite> KgcSelection<S> for Coordinator<S> {
    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn connected(&mut self, now: Now, peer: Peer, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        if self.contacts.len() >= MAX_KGCS || self.contacts.iter().any(|contact| contact.peer == peer) {
            return Vec::new();
        }
        self.backoff.reset();
        if self.deadline.is_none() {
            self.deadline = Some(now.monotonic + self.backoff.next(rng));
        }
        let mut contact = Contact::new(peer);
        let hello = greet(&mut contact, rng);
        self.contacts.push(contact);
        alloc::vec![hello]
    }

    fn disconnected(
        &mut self,
        shared: &SharedRequest<S>,
        now: Now,
        peer: Peer,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        self.contacts.retain(|contact| contact.peer != peer);
        // §3.7: a commitment ends with the connection that it was given to.
        let spoilt = self.round.as_ref().is_some_and(|round| round.due(peer).is_some());
        if self.contacts.is_empty() {
            self.round = None;
            self.deadline = None;
            return Vec::new();
        }
        if spoilt { self.resume(shared, now, rng) } else { Vec::new() }
    }

    /// The deadline has come. KGCs that committed themselves and did not sign are set aside; if too few are
    /// left then, everybody is asked again.
    fn retry(&mut self, shared: &SharedRequest<S>, now: Now, rng: &mut dyn CryptoRngCore) -> Steps<S> {
        if self.contacts.is_empty() {
            self.deadline = None;
            return Vec::new();
        }
        let again = self.repeat(shared, now);
        if !again.is_empty() {
            return again;
        }
        let mut steps = Vec::new();
        // §3.10: who committed itself and did not sign in time is excluded as well.
        let silent: Culprits = self.round.iter().flat_map(SigningRound::silent).collect();
        for (kgc, peer) in &silent {
            self.set_aside(*peer);
            steps.push(EnrolmentStep::Trouble(EnrolmentTrouble::Silent { kgc: *kgc, peer: *peer }));
        }
        // §3.10: too few are left: all are asked again, for being named is no proof.
        if silent.is_empty() || self.usable(now) < self.needed(shared) {
            steps.extend(self.too_few(shared));
            self.forgive();
        }
        steps.extend(self.attempt(now, rng));
        steps
    }

    fn receive(
        &mut self,
        shared: &SharedRequest<S>,
        deployment: &Deployment<S>,
        (now, from): (Now, Peer),
        message: &Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> Steps<S> {
        match message {
            Message::EnrolCookie(cookie) => {
                let greeted = |contact: &&mut Contact| contact.stage == ContactStage::Greeted(cookie.nonce);
                let contact = self.contact(from).filter(greeted);
                contact.map_or_else(Vec::new, |contact| {
                    contact.stage = ContactStage::Asked;
                    alloc::vec![EnrolmentStep::Send(from, shared.request(cookie))]
                })
            }
            // §3.5: a whole key that verifies is good, whatever its issuer.
            Message::EnrolReply(reply) => match shared.open(deployment, reply) {
                None => Vec::new(),
                Some(Ok(keypair)) => alloc::vec![EnrolmentStep::Enrolled(keypair)],
                Some(Err(error)) => alloc::vec![EnrolmentStep::Wrong(from, error.into())],
            },
            Message::Refusal(refusal) => self.refusal(shared, (now, from), refusal, rng),
            message => match message.extension() {
                Some(Ok(EnrolmentMessage::Commitment(commitment))) => {
                    self.commitment(shared, deployment, (now, from), &commitment)
                }
                Some(Ok(EnrolmentMessage::Share(share))) => {
                    self.share(shared, deployment, (now, from), &share, rng)
                }
                Some(Err(error)) => alloc::vec![EnrolmentStep::Wrong(from, error.into())],
                // What drones say to KGCs.
                Some(Ok(EnrolmentMessage::Signing(_) | EnrolmentMessage::Done(_))) | None => Vec::new(),
            },
        }
    }

    fn quorum(&self) -> Vec<Peer> {
        self.contacts.iter().map(|contact| contact.peer).collect()
    }
}

fn greet<S: Suite>(contact: &mut Contact, rng: &mut dyn CryptoRngCore) -> EnrolmentStep<S> {
    let mut nonce = [0; 16];
    rng.fill_bytes(&mut nonce);
    contact.stage = ContactStage::Greeted(nonce);
    EnrolmentStep::Send(contact.peer, Message::EnrolHello(EnrolHello { nonce }))
}

/// The KGCs that the request names.
fn kgcs<S: Suite>(shared: &SharedRequest<S>) -> &[KgcId] {
    shared.pending.request().kgcs()
}

/// Sorts items in ascending order of their keys, equals as they came. For the few that a quorum has: a
/// library's sort for each of their types takes a board more flash than it saves time.
pub(super) fn ascending<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::new();
    for item in items {
        let place = sorted.partition_point(|before| key(before) <= key(&item));
        sorted.insert(place, item);
    }
    sorted
}
