//! The KGC: hands out cookies, binds tokens to keys, issues sealed partial keys, signs revocation lists.

mod interface;
mod key;
mod list_recovery;
mod registry;
mod requests;
mod revocation_lists;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Error, Name, Revoked, Suite, UnixTime};
use quiver_message::Message;
use rand_core::CryptoRngCore;

pub use self::interface::{KgcCommand, KgcConfig, KgcEvent, KgcRecord};
pub use self::key::KgcSigningKey;
pub(crate) use self::key::{IssuingKey, KgcContext};
use self::list_recovery::ListRecovery;
use self::registry::Registry;
pub use self::revocation_lists::RevocationUsage;
pub use quiver_machine::RestoreError;
use quiver_machine::{
    COOKIE_LIFETIME, CookieJar, Input, Machine, Misdeeds, Now, Offence, Outbox, Output, Peer, Primary,
    REVOCATION_LIST_RATE, Revocations, SharedRoleState, TokenBuckets, Via, due, earlier, vouched,
};

/// The Key Generation Centre as a machine.
#[derive(Debug)]
pub struct Kgc<S: Suite> {
    config: KgcConfig<S>,
    cookies: CookieJar,
    registry: Registry,
    revocations: Revocations<S>,
    /// Drones to be revoked that no list names yet.
    wanted: BTreeMap<[u8; 16], Revoked>,
    /// Lists above our own that peers claim to hold.
    list_recovery: ListRecovery,
    /// Connected peers that asked for revocation lists, and the longest that each takes: they are sent every
    /// new one.
    listeners: BTreeMap<Peer, u32>,
    /// Revocation lists that each peer may be sent.
    answers: TokenBuckets,
    misdeeds: Misdeeds,
    /// Time to renew the revocation list, once the time is known.
    renewal: Option<Duration>,
    started: bool,
    out: Outbox<KgcEvent, KgcRecord>,
}

impl<S: Suite> Kgc<S> {
    /// A KGC that remembers these records.
    ///
    /// # Errors
    /// If a stored revocation list does not hold: a KGC that went on without it would forget who was revoked.
    /// If the share of a quorum is another KGC's.
    pub fn new(
        config: KgcConfig<S>,
        records: impl IntoIterator<Item = KgcRecord>,
    ) -> Result<Self, RestoreError> {
        if config.master.0.share_of().is_some_and(|kgc| kgc != config.id) {
            return Err(Error::WrongKgc.into());
        }
        let mut kgc = Self {
            cookies: CookieJar::new(config.cookie_key.clone(), COOKIE_LIFETIME),
            registry: Registry::default(),
            revocations: Revocations::new(),
            wanted: BTreeMap::new(),
            list_recovery: ListRecovery::new(),
            listeners: BTreeMap::new(),
            answers: TokenBuckets::new(REVOCATION_LIST_RATE),
            misdeeds: Misdeeds::default(),
            renewal: None,
            started: false,
            out: Outbox::new(),
            config,
        };
        let (lists, others): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| matches!(record, KgcRecord::RevocationList { .. }));
        for record in &lists {
            if let KgcRecord::RevocationList { list, .. } = record {
                kgc.revocations.offer(&kgc.config.deployment, list)?;
            }
        }
        // Before the keys, because a revoked identity no longer holds its name.
        kgc.registry.revoke_drones(&kgc.revocations.list().revoked);
        others.iter().for_each(|record| kgc.registry.apply(record));
        Ok(kgc)
    }

    /// Number of issued keys; at a KGC of a quorum, of tokens that are bound to a drone's key.
    pub fn issued(&self) -> usize {
        self.registry.issued()
    }

    /// Number of open signing rounds, at a KGC of a quorum.
    pub fn open_rounds(&self) -> usize {
        self.config.master.0.open_rounds()
    }

    /// Signs with this from now on: a share that was refreshed or repaired. Rounds that are open are over.
    ///
    /// # Errors
    /// [`Error::WrongKgc`] if it is another KGC's; nothing changes then.
    pub fn replace_share(&mut self, share: impl Into<KgcSigningKey<S>>) -> Result<(), Error> {
        let share = share.into();
        if share.0.share_of() != Some(self.config.id) {
            return Err(Error::WrongKgc);
        }
        // §3.7: a commitment ends with a refresh.
        self.config.master = share;
        Ok(())
    }

    /// Returns true if this KGC needs no other's signature.
    fn signs_alone(&self) -> bool {
        self.config.master.0.whole().is_some()
    }

    /// The key, and what it answers a peer with.
    fn key<'a>(
        &'a mut self,
        now: Now,
        from: Peer,
        rng: &'a mut dyn CryptoRngCore,
    ) -> (&'a mut dyn IssuingKey<S>, KgcContext<'a, S>) {
        let KgcConfig { deployment, master, id, .. } = &mut self.config;
        let Self { registry, misdeeds, out, .. } = self;
        let cx = KgcContext { now, from, deployment, id: *id, registry, misdeeds, out, rng };
        (&mut *master.0, cx)
    }

    /// The number of the newest revocation list, 0 for none.
    pub fn revocation_number(&self) -> u64 {
        self.revocations.number()
    }

    /// Time at which the newest revocation list was signed, by its signer's clock; `None` without one.
    pub fn revocations_issued(&self) -> Option<UnixTime> {
        let list = self.revocations.list();
        (list.number > 0).then_some(list.issued)
    }

    /// The drone that signed its clock (`Edge::vouch`).
    ///
    /// # Errors
    /// If that does not hold, or the drone is revoked.
    pub fn vouched(&self, statement: &[u8], signed: &[u8]) -> Result<Name, Error> {
        vouched(&self.config.deployment, &self.revocations, statement, signed)
    }

    /// The newest revocation list, signed and encoded; `None` without one.
    #[must_use]
    pub fn signed_revocations(&self) -> Option<&[u8]> {
        self.revocations.signed_bytes()
    }

    fn dispatch(&mut self, now: Now, from: Peer, message: Message<S>, rng: &mut dyn CryptoRngCore) {
        match message {
            Message::EnrolHello(hello) => self.enrol_hello(now, from, &hello),
            Message::EnrolRequest(request) => self.enrol_request(now, from, &request, rng),
            Message::RevocationQuery(query) => {
                // §12.7: 4 lists at once for a peer, and one every 15 s.
                if self.answers.take(now.monotonic, from).is_ok() {
                    self.revocation_query(now, from, &query);
                }
            }
            Message::RevocationList(list) => self.revocation_list(now, from, &list.list, rng),
            Message::EquivocationProof(proof) => self.equivocation(now, from, *proof, rng),
            message => {
                let (key, mut cx) = self.key(now, from, rng);
                if !key.receive(&mut cx, &message) {
                    cx.blame(Offence::out_of_place(&message, "message to a KGC"));
                }
            }
        }
    }

    /// Starts the machine before the first input is heeded.
    fn start(&mut self, now: Now) {
        if !self.started {
            self.started = true;
            self.renewal = Some(now.monotonic);
            self.defer_renewal(now);
        }
    }

    /// Handles everything due, whatever the input was.
    fn tick(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.config.master.0.expire(now.monotonic);
        self.start(now);
        if self.list_recovery.has_waited(now.monotonic) || due(self.renewal, now.monotonic) {
            self.sign_wanted(now, rng);
            self.renew_list(now, rng);
        }
    }

    /// Reports an offence of a peer.
    fn blame(&mut self, peer: Peer, offence: Offence) {
        key::blame(&mut self.out, &mut self.misdeeds, peer, offence);
    }
}

impl<S: Suite> Machine for Kgc<S> {
    type Command = KgcCommand;
    type Event = KgcEvent;
    type Record = KgcRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, KgcCommand>, rng: &mut dyn CryptoRngCore) {
        self.start(now);
        match input {
            Input::Timeout | Input::Connected { .. } => {}
            Input::Disconnected { peer } => {
                self.answers.disconnected(peer);
                self.misdeeds.disconnected(peer);
                self.listeners.remove(&peer);
                self.list_recovery.disconnected(peer);
                self.config.master.0.disconnected(peer);
            }
            // §13.6: a KGC is in no group.
            Input::Received { via: Via::Group, .. } => {}
            Input::Received { from, via, bytes } => {
                if let Some(message) = self.decode((from, via), bytes) {
                    self.dispatch(now, from, message, rng);
                }
            }
            // §13.9: another copy may sign with the same nonces.
            Input::Resumed => self.config.master.0.forget(),
            Input::Command(KgcCommand::RevokeDrones(drones)) => {
                self.revoke_drones(now, drones, rng);
                self.renew_list(now, rng);
            }
            Input::Command(KgcCommand::TakeRevocations(list)) => self.take_list(list),
            Input::Command(KgcCommand::RevokeTokens(ids)) => self.registry.revoke_tokens(&ids),
        }
        self.tick(now, rng);
    }

    fn poll_output(&mut self) -> Output<KgcEvent, KgcRecord> {
        let due =
            earlier(earlier(self.renewal, self.config.master.0.deadline()), self.list_recovery.deadline());
        let deadline = if self.started { due } else { Some(Duration::ZERO) };
        self.out.poll(deadline)
    }
}

impl<S: Suite> Primary for Kgc<S> {
    type Suite = S;

    fn decode(&mut self, (from, _): (Peer, Via), bytes: &[u8]) -> Option<Message<S>> {
        let decoded = Message::decode(&self.config.deployment, bytes);
        decoded.map_err(|error| self.blame(from, error.into())).ok()
    }

    fn receive(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        message: Message<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        self.start(now);
        if via == Via::Peer {
            self.dispatch(now, from, message, rng);
        }
        self.tick(now, rng);
    }

    fn wake(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        self.tick(now, rng);
    }

    fn blame(&mut self, (peer, _): (Peer, Via), offence: Offence) {
        self.blame(peer, offence);
    }

    fn shared(&self) -> SharedRoleState<'_, S> {
        let (deployment, revocations) = (&self.config.deployment, &self.revocations);
        SharedRoleState { deployment, keypair: None, revocations, group: None }
    }
}
