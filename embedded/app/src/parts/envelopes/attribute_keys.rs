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

use quiver_ainq::{Deployment, DroneKeypair, Error, Name, SignedAuthority};
use quiver_crypto::Zeroizing;
use quiver_delivery::Standalone;
use quiver_delivery::attributes::{
    FetchCommand, FetchEvent, FetchTiming, Fetcher, HeldAuthority, HeldKey, KIND, KeyResponse, Keyring,
    KeyringEntry,
};
use quiver_envelope::{AttributeAccess, AttributeKeys};
use quiver_link::Counter;
use quiver_machine::{Destination, Input, Machine, Output, Peer, Route, Via};
use rand_core::CryptoRngCore;

use crate::console::ConsoleOutput;
use crate::node::S;
use crate::parts::PartContext;

/// Time limit of one fetch.
const PATIENCE: Duration = Duration::from_secs(60);
/// Delay after the first fetch that was not confirmed by every authority; doubles from there.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest such wait.
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

/// The keyring, and what is still to be done with it.
pub(super) struct HeldAttributes {
    keyring: Keyring<S>,
    /// The same, decoded: in the order of `names`.
    pub(super) keys: AttributeKeys,
    names: Vec<Name>,
    task: Option<KeyringTask>,
}

/// Steps after a keyring has changed, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyringTask {
    /// Making it durable, because no key may be used that a reset would lose.
    Store,
    /// Handing it to the machine.
    Use,
    /// Printing it.
    Print,
}

impl HeldAttributes {
    /// Makes the state in which nothing is held.
    pub(super) fn new() -> Self {
        Self {
            keyring: Keyring::default(),
            keys: AttributeKeys::new(Vec::new()),
            names: Vec::new(),
            task: None,
        }
    }

    /// Takes a keyring as it was stored.
    ///
    /// # Errors
    /// The reason why it is none of this deployment.
    pub(super) fn restore(&mut self, bytes: &[u8], deployment: &Deployment<S>) -> Result<(), Error> {
        self.keyring = Keyring::decode(bytes, deployment)?;
        self.task = Some(KeyringTask::Use);
        Ok(())
    }

    /// The encoded keyring; empty if nothing is held.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        match self.keyring.entries().next() {
            Some(_) => self.keyring.encode(),
            None => Zeroizing::default(),
        }
    }

    /// Takes the next task; the one after it follows once it is done.
    pub(super) const fn next_task(&mut self) -> Option<KeyringTask> {
        let task = self.task;
        self.task = match task {
            Some(KeyringTask::Store) => Some(KeyringTask::Use),
            Some(KeyringTask::Use) => Some(KeyringTask::Print),
            Some(KeyringTask::Print) | None => None,
        };
        task
    }

    /// Erases the keyring. False if nothing is held.
    pub(super) fn erase(&mut self) -> bool {
        if self.keyring.entries().next().is_none() {
            return false;
        }
        self.keyring = Keyring::default();
        self.task = Some(KeyringTask::Use);
        true
    }

    /// Entry and access of the authority of this name, if this image can use it.
    pub(super) fn of(&self, name: &str) -> Option<(&KeyringEntry<S>, &AttributeAccess)> {
        let mut held = self.names.iter().zip(self.keys.iter());
        let (name, access) = held.find(|(held, _)| held.as_str() == name)?;
        Some((self.keyring.entry(name)?, access))
    }

    /// Decodes the keys that the machine can use.
    #[inline(never)]
    pub(super) fn decode(&mut self) -> AttributeKeys {
        let entries = self.keyring.entries_of(KIND);
        let usable = entries
            .filter_map(|entry| Some((entry.authority.name.clone(), AttributeAccess::of(entry).ok()?)));
        let (names, access) = usable.unzip();
        self.names = names;
        self.keys = AttributeKeys::new(access);
        self.keys.clone()
    }

    /// Prints the keyring, a line for each authority.
    pub(super) fn print(&self, console: &mut ConsoleOutput) {
        for (name, access) in self.names.iter().zip(self.keys.iter()) {
            let (scheme, key) = (access.parameters().scheme(), access.key());
            let terms = key.map_or_else(|| "-".into(), |key| key.terms());
            console.print_line(format_args!("attributes {name} {scheme} {terms}"));
        }
    }

    /// Holds what an authority has answered, from when it is durable on.
    fn hold<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, entry: KeyringEntry<S>) {
        let (name, before) = (entry.authority.name.clone(), self.keyring.clone());
        match self.keyring.put(entry) {
            // It was held before.
            Ok(false) => return,
            Err(error) => return cx.print_line(format_args!("fault attribute key of {name}: {error}")),
            Ok(true) => {}
        }
        // The machine's state grows with revocations: half of what fits is left to it.
        let (len, limit) = (self.keyring.encode().len(), cx.state_limit / 2);
        if len > limit {
            self.keyring = before;
            cx.board.report.add(Counter::FlashFull);
            return cx.print_line(format_args!(
                "fault attribute key of {name}: {len} bytes with all that is held, room for {limit}"
            ));
        }
        self.task = Some(KeyringTask::Store);
    }

    /// The keyring entry that follows from an authority's answer; `None` if envelopes have no use for it.
    #[inline(never)]
    fn entry(
        &self,
        deployment: &Deployment<S>,
        statement: &[u8],
        response: KeyResponse,
    ) -> Result<Option<KeyringEntry<S>>, String> {
        let authority = SignedAuthority::decode(statement).and_then(|signed| signed.verify(deployment));
        let authority = authority.map_err(|error| error.to_string())?;
        if authority.kind.as_str() != KIND {
            return Ok(None);
        }
        let held = || self.keyring.entry(&authority.name).and_then(|entry| entry.key.clone());
        let key = match response {
            KeyResponse::Key { grant, key } => Some(HeldKey { grant, key }),
            KeyResponse::Held { .. } | KeyResponse::Nothing => held(),
            KeyResponse::Withdrawn => None,
        };
        let entry = KeyringEntry { authority, key };
        AttributeAccess::of(&entry).map_err(|error| error.to_string())?;
        Ok(Some(entry))
    }
}

/// The fetch that is under way or to come.
pub(super) struct KeyFetch {
    fetcher: Option<Box<Standalone<S, Fetcher<S>>>>,
    /// Deadline of the fetcher.
    deadline: Option<Duration>,
    /// Deadline of the fetch under way.
    until: Duration,
    /// Time at which the next fetch begins.
    next: Option<Duration>,
    /// Delay after the next fetch that is not confirmed by every authority.
    wait: Duration,
}

impl KeyFetch {
    /// Makes one that begins as soon as it is possible.
    pub(super) const fn new() -> Self {
        Self { fetcher: None, deadline: None, until: Duration::ZERO, next: Some(Duration::ZERO), wait: AGAIN }
    }

    /// Returns true if a fetch is under way.
    pub(super) const fn is_under_way(&self) -> bool {
        self.fetcher.is_some()
    }

    /// Returns true if a fetch is possible: the board is enrolled, and its gateway can connect it to a KGC.
    pub(super) fn is_possible<R: CryptoRngCore>(&self, cx: &PartContext<'_, R>) -> bool {
        cx.is_enrolled() && cx.board.gateway.endpoint.has_session()
    }

    /// Deadline of the next action, if it is possible.
    pub(super) fn due(&self) -> Option<Duration> {
        match &self.fetcher {
            Some(_) => Some(self.deadline.map_or(self.until, |at| at.min(self.until))),
            None => self.next,
        }
    }

    fn again(&mut self, now: Duration) {
        self.next = Some(now.saturating_add(self.wait));
        self.wait = (2 * self.wait).min(AGAIN_AT_MOST);
    }

    /// Begins a fetch soon, as `fetch` on the console asks.
    pub(super) fn request<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>) {
        if !cx.is_enrolled() {
            return cx.print_line(format_args!("error not enrolled"));
        }
        self.wait = AGAIN;
        if !self.is_under_way() {
            self.next = Some(cx.now);
        }
        cx.print_line(format_args!("ok"));
    }

    /// Does what is due.
    pub(super) fn advance<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, held: &HeldAttributes) {
        if self.due().is_none_or(|at| at > cx.now) || !self.is_possible(cx) {
            return;
        }
        if !self.is_under_way() {
            self.begin(cx, held);
        } else if self.until <= cx.now {
            self.fetcher = None;
            self.again(cx.now);
            cx.print_line(format_args!("unfetched no answer"));
        } else {
            // Until the fetcher is asked for another deadline.
            self.deadline = None;
            self.input(cx, Input::Timeout);
        }
    }

    fn begin<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, held: &HeldAttributes) {
        self.fetcher = fetcher(cx, held);
        self.until = cx.now.saturating_add(PATIENCE);
        (self.next, self.deadline) = (None, None);
        let kgcs: Vec<Peer> = cx.board.gateway.connections.on(Route::Kgc).collect();
        for peer in kgcs {
            self.input(cx, Input::Connected { peer, route: Route::Kgc });
        }
    }

    /// A connection to a KGC stands.
    pub(super) fn connected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer) {
        self.input(cx, Input::Connected { peer, route: Route::Kgc });
    }

    /// A connection is gone.
    pub(super) fn disconnected<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, peer: Peer) {
        self.input(cx, Input::Disconnected { peer });
    }

    /// Takes a message, if it is a KGC's and keys are being fetched.
    pub(super) fn received<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        from: Peer,
        bytes: &[u8],
    ) -> bool {
        if !self.is_under_way() || !cx.board.gateway.connections.on(Route::Kgc).any(|kgc| kgc == from) {
            return false;
        }
        self.input(cx, Input::Received { from, via: Via::Peer, bytes });
        true
    }

    /// Feeds the fetcher, if there is one.
    #[inline(never)]
    fn input<R: CryptoRngCore>(&mut self, cx: &mut PartContext<'_, R>, input: Input<'_, FetchCommand>) {
        let times = cx.times();
        if let Some(fetcher) = &mut self.fetcher
            && let Some(rng) = cx.board.random.generator(cx.now)
        {
            fetcher.handle_input(times, input, rng);
        }
    }

    /// Executes the fetcher's outputs. True if the keyring has changed, and more may be to come.
    pub(super) fn poll<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        held: &mut HeldAttributes,
    ) -> bool {
        while let Some(fetcher) = &mut self.fetcher {
            match fetcher.poll_output() {
                Output::Persist(never) => match never {},
                Output::Transmit { to: Destination::Group, .. } => {}
                Output::Transmit { to, payload } => cx.board.gateway.transmit(to, payload),
                Output::Block(peer) => cx.board.gateway.block(peer),
                // A board relays for nobody and penalises nobody.
                Output::Relay { .. } | Output::Penalize { .. } | Output::Disconnect(_) => {}
                Output::Event(event) => {
                    self.handle_event(cx, held, event);
                    if held.task.is_some() {
                        return true;
                    }
                }
                Output::Timeout(at) => {
                    self.deadline = at;
                    return false;
                }
            }
        }
        false
    }

    fn handle_event<R: CryptoRngCore>(
        &mut self,
        cx: &mut PartContext<'_, R>,
        held: &mut HeldAttributes,
        event: FetchEvent,
    ) {
        match event {
            FetchEvent::Answered { authority, statement, response } => {
                // A board without settings fetches nothing.
                let Some(settings) = &cx.board.settings else { return };
                match held.entry(&settings.deployment, &statement, response) {
                    Ok(Some(entry)) => held.hold(cx, entry),
                    Ok(None) => {}
                    Err(error) => {
                        cx.print_line(format_args!("fault attribute key of {authority}: {error}"));
                    }
                }
            }
            FetchEvent::Refused(reason) => cx.print_line(format_args!("unfetched {reason:?}")),
            FetchEvent::Blamed { peer, offence } => {
                cx.board.report.add(Counter::Offences);
                cx.print_line(format_args!("blamed {} {offence}", peer.0));
            }
            FetchEvent::Done { answered, refused } => {
                self.fetcher = None;
                if answered == 0 || refused > 0 {
                    self.again(cx.now);
                }
                cx.print_line(format_args!("fetched answered {answered} refused {refused}"));
            }
            _ => {}
        }
    }
}

/// Machine that fetches, for the drone's key and what is held.
#[inline(never)]
fn fetcher<R: CryptoRngCore>(
    cx: &PartContext<'_, R>,
    held: &HeldAttributes,
) -> Option<Box<Standalone<S, Fetcher<S>>>> {
    let deployment = cx.board.settings.as_ref()?.deployment.clone();
    let own = cx.edge?.keypair()?;
    let keypair = DroneKeypair::restore(&deployment, own.public().clone(), &own.to_bytes()).ok()?;
    let held = held.keyring.entries().map(|entry| HeldAuthority {
        statement: entry.authority.bytes(),
        grant: entry.key.as_ref().map(|key| key.grant),
    });
    let held = held.collect();
    // The held keys were verified when they came, and when they were read.
    let fetcher = Fetcher::new(&deployment, held, FetchTiming::default()).ok()?;
    Some(Box::new(Standalone::client(deployment, keypair, fetcher)))
}
