//! Attribute keys: fetched from the authorities beside the KGC, through the gateway, and kept with the state.
//!
//! The fetch is a machine of its own beside the drone's. While it runs, the board asks its gateway for the
//! KGCs, and their answers are for this machine. It is begun at every start and by `fetch`; until every
//! authority has answered it is begun again, later and later: an attacker between the board and the KGC can
//! forge refusals, and a list without authorities.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_abe::envelope::SessionLimits;
use quiver_ainq::{DroneKeypair, Name, SignedAuthority};
use quiver_crypto::Zeroizing;
use quiver_delivery::Standalone;
use quiver_delivery::attributes::{
    FetchCommand, FetchEvent, FetchTiming, Fetcher, HeldAuthority, HeldKey, KIND, KeyResponse, Keyring,
    KeyringEntry,
};
use quiver_envelope::{AttributeAccess, AttributeKeys, EnvelopeCommand, EnvelopeLimits, Envelopes};
use quiver_link::Counter;
use quiver_machine::{Destination, Either, Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use rand_core::CryptoRngCore;

use super::{BoardEdgeNode, S};

/// Limits of time and memory for envelopes. An opening takes seconds and about half of the heap.
pub(super) const LIMITS: EnvelopeLimits = EnvelopeLimits {
    ciphertext: 640,
    openings: (4, Duration::from_secs(10)),
    jumps: (8, Duration::from_secs(2)),
    sessions: SessionLimits { sessions: 8, per_sender: 8, senders: 16, skipped: 8 },
    early: (4, 4_096),
    unfit: 32,
    open: 2,
};
/// Time limit of one fetch.
const PATIENCE: Duration = Duration::from_secs(60);
/// Delay after the first fetch that was not confirmed by every authority; doubles from there.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest such wait.
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

/// The keyring, and the fetch that is under way or to come.
pub(super) struct Attributes {
    keyring: Keyring<S>,
    /// The same, decoded: in the order of `names`.
    pub(super) keys: AttributeKeys,
    names: Vec<Name>,
    /// The machine does not have the keys that are held.
    changed: bool,
    fetcher: Option<Box<Standalone<S, Fetcher<S>>>>,
    deadline: Option<Duration>,
    /// Deadline of the fetch under way.
    until: Duration,
    /// Time at which the next fetch begins.
    next: Option<Duration>,
    wait: Duration,
    /// The machine's state as it was last stored: it is stored again with new keys.
    state: Option<Snapshot>,
}

impl Attributes {
    /// Makes the state in which nothing is held, and a fetch is to begin.
    pub(super) fn none() -> Self {
        Self {
            keyring: Keyring::default(),
            keys: AttributeKeys::new(Vec::new()),
            names: Vec::new(),
            changed: false,
            fetcher: None,
            deadline: None,
            until: Duration::ZERO,
            next: Some(Duration::ZERO),
            wait: AGAIN,
            state: None,
        }
    }

    /// Returns true if a fetch is under way.
    pub(super) const fn is_fetching(&self) -> bool {
        self.fetcher.is_some()
    }

    /// Deadline of the next action, if the board is enrolled.
    pub(super) fn due(&self) -> Option<Duration> {
        match &self.fetcher {
            Some(_) => Some(self.deadline.map_or(self.until, |at| at.min(self.until))),
            None => self.next,
        }
    }

    /// The encoded keyring; empty if there are no keys.
    pub(super) fn encoded(&self) -> Zeroizing<Vec<u8>> {
        match self.keyring.entries().next() {
            Some(_) => self.keyring.encode(),
            None => Zeroizing::new(Vec::new()),
        }
    }

    /// The state is stored.
    pub(super) fn stored(&mut self, state: Snapshot) {
        self.state = Some(state);
    }

    /// Entry and access of the authority of this name, if this image can use it.
    pub(super) fn of(&self, name: &str) -> Option<(&KeyringEntry<S>, &AttributeAccess)> {
        let mut held = self.names.iter().zip(self.keys.iter());
        let (name, access) = held.find(|(held, _)| held.as_str() == name)?;
        Some((self.keyring.entry(name)?, access))
    }

    fn again(&mut self, now: Duration) {
        self.next = Some(now.saturating_add(self.wait));
        self.wait = (2 * self.wait).min(AGAIN_AT_MOST);
    }
}

/// Envelopes are beside the edge.
pub(super) type Parts = Envelopes;

/// Makes the envelopes, with limits by which they open no more than a board can.
pub(super) const fn parts() -> Parts {
    Envelopes::new(LIMITS)
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Takes what was stored.
    pub(super) fn take_attributes(&mut self, keyring: &[u8], state: Option<&Snapshot>) {
        self.attributes = Attributes { state: state.cloned(), ..Attributes::none() };
        let Some(settings) = self.settings.as_ref().filter(|_| !keyring.is_empty()) else { return };
        match Keyring::decode(keyring, &settings.deployment) {
            Ok(keyring) => (self.attributes.keyring, self.attributes.changed) = (keyring, true),
            Err(error) => {
                self.report.add(Counter::StateDamaged);
                self.print_line(format_args!("fault attribute keys: {error}"));
            }
        }
    }

    fn is_enrolled(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.keypair().is_some())
    }

    /// Returns true if a fetch is possible: the board is enrolled and connected to a KGC.
    pub(super) fn can_fetch(&self) -> bool {
        self.is_enrolled() && self.endpoint.has_session() && !self.random.is_faulty()
    }

    /// Does what is due.
    pub(super) async fn step_attributes(&mut self, now: Duration) {
        if !self.is_enrolled() || !self.is_fit(now).await {
            return;
        }
        if self.attributes.changed {
            self.use_keys(now).await;
        }
        if self.attributes.due().is_none_or(|at| at > now) || !self.can_fetch() {
            return;
        }
        if !self.attributes.is_fetching() {
            self.begin_fetch(now).await;
        } else if self.attributes.until <= now {
            self.attributes.fetcher = None;
            self.attributes.again(now);
            self.print_line(format_args!("unfetched no answer"));
        } else {
            self.fetch_input(now, Input::Timeout).await;
        }
    }

    /// Begins a fetch, as `fetch` on the console asks.
    pub(super) fn fetch(&mut self, now: Duration) {
        if !self.is_enrolled() {
            return self.print_line(format_args!("error not enrolled"));
        }
        self.attributes.wait = AGAIN;
        if !self.attributes.is_fetching() {
            self.attributes.next = Some(now);
        }
        self.print_line(format_args!("ok"));
    }

    async fn begin_fetch(&mut self, now: Duration) {
        self.attributes.fetcher = self.fetcher();
        self.attributes.until = now.saturating_add(PATIENCE);
        (self.attributes.next, self.attributes.deadline) = (None, None);
        let kgcs: Vec<Peer> = self.connections.on(Route::Kgc).collect();
        for peer in kgcs {
            self.fetch_input(now, Input::Connected { peer, route: Route::Kgc }).await;
        }
    }

    #[inline(never)]
    fn fetcher(&self) -> Option<Box<Standalone<S, Fetcher<S>>>> {
        let deployment = self.settings.as_ref()?.deployment.clone();
        let own = self.machine.as_ref()?.keypair()?;
        let keypair = DroneKeypair::restore(&deployment, own.public().clone(), &own.to_bytes()).ok()?;
        let held = self.attributes.keyring.entries().map(|entry| HeldAuthority {
            statement: entry.authority.bytes(),
            grant: entry.key.as_ref().map(|key| key.grant),
        });
        let held = held.collect();
        // The held keys were verified when they came, and when they were read.
        let fetcher = Fetcher::new(&deployment, held, FetchTiming::default()).ok()?;
        Some(Box::new(Standalone::client(deployment, keypair, fetcher)))
    }

    /// A connection is there.
    pub(super) async fn fetch_from(&mut self, now: Duration, peer: Peer, route: Route) {
        if self.attributes.is_fetching() && route == Route::Kgc {
            self.fetch_input(now, Input::Connected { peer, route }).await;
        }
    }

    /// A connection is gone.
    pub(super) async fn fetch_without(&mut self, now: Duration, peer: Peer) {
        if self.attributes.is_fetching() {
            self.fetch_input(now, Input::Disconnected { peer }).await;
        }
    }

    /// Takes a message, if it is a KGC's and keys are being fetched.
    pub(super) async fn fetched(&mut self, now: Duration, from: Peer, bytes: &[u8]) -> bool {
        if !self.attributes.is_fetching() || !self.connections.on(Route::Kgc).any(|kgc| kgc == from) {
            return false;
        }
        self.fetch_input(now, Input::Received { from, via: Via::Peer, bytes }).await;
        true
    }

    async fn fetch_input(&mut self, now: Duration, input: Input<'_, FetchCommand>) {
        self.advance_fetch(now, input);
        while let Some(fetcher) = &mut self.attributes.fetcher {
            match fetcher.poll_output() {
                Output::Persist(never) => match never {},
                Output::Transmit { to: Destination::Group, .. } => {}
                Output::Transmit { to, payload } => self.transmit(to, payload),
                Output::Block(peer) => self.block(peer),
                // A board relays for nobody and penalises nobody.
                Output::Relay { .. } | Output::Penalize { .. } | Output::Disconnect(_) => {}
                Output::Event(event) => self.fetch_event(now, event).await,
                Output::Timeout(at) => {
                    self.attributes.deadline = at;
                    return;
                }
            }
        }
    }

    #[inline(never)]
    fn advance_fetch(&mut self, now: Duration, input: Input<'_, FetchCommand>) {
        let times = Now { monotonic: now, unix: self.clock.unix(now) };
        if let (Some(fetcher), Some(rng)) = (&mut self.attributes.fetcher, self.random.generator(now)) {
            fetcher.handle_input(times, input, rng);
        }
    }

    async fn fetch_event(&mut self, now: Duration, event: FetchEvent) {
        match event {
            FetchEvent::Answered { authority, statement, response } => match self.entry(&statement, response)
            {
                Ok(Some(entry)) => self.hold(now, entry).await,
                Ok(None) => {}
                Err(error) => self.print_line(format_args!("fault attribute key of {authority}: {error}")),
            },
            FetchEvent::Refused(reason) => self.print_line(format_args!("unfetched {reason:?}")),
            FetchEvent::Blamed { peer, offence } => {
                self.report.add(Counter::Offences);
                self.print_line(format_args!("blamed {} {offence}", peer.0));
            }
            FetchEvent::Done { answered, refused } => {
                self.attributes.fetcher = None;
                if answered == 0 || refused > 0 {
                    self.attributes.again(now);
                }
                self.print_line(format_args!("fetched answered {answered} refused {refused}"));
            }
            _ => {}
        }
    }

    /// The keyring entry that follows from an authority's answer; `None` if envelopes have no use for it.
    #[inline(never)]
    fn entry(&self, statement: &[u8], response: KeyResponse) -> Result<Option<KeyringEntry<S>>, String> {
        let Some(settings) = &self.settings else { return Ok(None) };
        let authority =
            SignedAuthority::decode(statement).and_then(|signed| signed.verify(&settings.deployment));
        let authority = authority.map_err(|error| error.to_string())?;
        if authority.kind.as_str() != KIND {
            return Ok(None);
        }
        let held = || self.attributes.keyring.entry(&authority.name).and_then(|entry| entry.key.clone());
        let key = match response {
            KeyResponse::Key { grant, key } => Some(HeldKey { grant, key }),
            KeyResponse::Held { .. } | KeyResponse::Nothing => held(),
            KeyResponse::Withdrawn => None,
        };
        let entry = KeyringEntry { authority, key };
        AttributeAccess::of(&entry).map_err(|error| error.to_string())?;
        Ok(Some(entry))
    }

    /// Holds an entry, durably.
    async fn hold(&mut self, now: Duration, entry: KeyringEntry<S>) {
        let (name, before) = (entry.authority.name.clone(), self.attributes.keyring.clone());
        match self.attributes.keyring.put(entry) {
            Ok(false) => return,
            Err(error) => return self.print_line(format_args!("fault attribute key of {name}: {error}")),
            Ok(true) => {}
        }
        // The machine's state grows with revocations: half of what fits is left to it.
        let (len, limit) = (self.attributes.keyring.encode().len(), self.storage.limit() / 2);
        if len > limit {
            self.attributes.keyring = before;
            self.report.add(Counter::FlashFull);
            return self.print_line(format_args!(
                "fault attribute key of {name}: {len} bytes with all that is held, room for {limit}"
            ));
        }
        self.attributes.changed = true;
        if self.unsaved.is_none() {
            self.unsaved = self.attributes.state.clone();
        }
        if self.save(now).await {
            self.use_keys(now).await;
        }
    }

    /// Erases the keyring if the state is too long beside it: rather no envelopes than no group. False if
    /// nothing is.
    pub(super) fn forget_attributes(&mut self) -> bool {
        if self.attributes.keyring.entries().next().is_none() {
            return false;
        }
        self.attributes.keyring = Keyring::default();
        self.attributes.changed = true;
        self.report.add(Counter::FlashFull);
        self.print_line(format_args!("fault no room for attribute keys beside the state: erased"));
        true
    }

    /// Hands the keyring to the machine.
    async fn use_keys(&mut self, now: Duration) {
        self.decode_keys();
        self.attributes.changed = false;
        let keys = EnvelopeCommand::Keys(self.attributes.keys.clone());
        self.input(now, Input::Command(Either::Right(keys))).await;
        self.print_attributes();
    }

    #[inline(never)]
    fn decode_keys(&mut self) {
        let entries = self.attributes.keyring.entries_of(KIND);
        // The entries that the machine can use.
        let usable = entries
            .filter_map(|entry| Some((entry.authority.name.clone(), AttributeAccess::of(entry).ok()?)));
        let (names, access) = usable.unzip();
        self.attributes.names = names;
        self.attributes.keys = AttributeKeys::new(access);
    }

    /// Prints the keyring, a line for each authority.
    pub(super) fn print_attributes(&mut self) {
        let lines: Vec<String> = self
            .attributes
            .names
            .iter()
            .zip(self.attributes.keys.iter())
            .map(|(name, access)| {
                let (scheme, key) = (access.parameters().scheme(), access.key());
                let terms = key.map_or_else(|| "-".into(), |key| key.terms());
                alloc::format!("attributes {name} {scheme} {terms}")
            })
            .collect();
        lines.iter().for_each(|line| self.print_line(format_args!("{line}")));
    }
}
