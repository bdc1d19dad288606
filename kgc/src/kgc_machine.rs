//! The KGC that drones know, as a machine that takes up attribute authorities and the share of a master key
//! while it runs.

use quiver_ainq::Ristretto255;
use quiver_delivery::attributes::IssuingAuthority;
use quiver_delivery::kgc;
use quiver_machine::{Input, Machine, MachinePart, Now, Output};
use rand_core::CryptoRngCore;

use crate::features::Release;
use crate::key_release::KeyRelease;

/// The KGC with the deliveries of this build.
pub(crate) type ServingKgc = kgc::KgcNode<Ristretto255, Release>;
/// Commands of a [`ServingKgc`].
pub(crate) type ServingCommand = kgc::KgcNodeCommand<<Release as MachinePart<Ristretto255>>::Command>;
/// Events of a [`ServingKgc`].
pub(crate) type ServingEvent = kgc::KgcNodeEvent<<Release as MachinePart<Ristretto255>>::Event>;
/// Durable records of a [`ServingKgc`].
pub(crate) type ServingRecord = kgc::KgcNodeRecord<<Release as MachinePart<Ristretto255>>::Record>;

/// A change that the command line made beside the running KGC.
pub(crate) enum CommandLineChange {
    /// A command of the operator.
    Command(ServingCommand),
    /// An attribute authority was set up.
    Authority(Box<IssuingAuthority<Ristretto255>>),
    /// A master key of encryption to conditions was set up.
    Share(Box<<Release as KeyRelease>::Share>),
}

/// The machine.
#[derive(Debug)]
pub(crate) struct KgcMachine(ServingKgc);

impl KgcMachine {
    pub(crate) const fn new(node: ServingKgc) -> Self {
        Self(node)
    }

    /// The KGC and its deliveries.
    pub(crate) const fn node(&self) -> &ServingKgc {
        &self.0
    }

    /// The same, to be changed.
    pub(crate) const fn node_mut(&mut self) -> &mut ServingKgc {
        &mut self.0
    }
}

/// Offers an authority to drones from now on.
fn add_authority(node: &mut ServingKgc, authority: IssuingAuthority<Ristretto255>) {
    let name = authority.statement.name.clone();
    if let Err(error) = node.parts_mut().keys.issuer_mut().add(authority) {
        tracing::error!(%name, %error, "attribute authority not taken up");
    }
}

impl Machine for KgcMachine {
    type Command = CommandLineChange;
    type Event = ServingEvent;
    type Record = ServingRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, CommandLineChange>, rng: &mut dyn CryptoRngCore) {
        let input = match input {
            Input::Timeout => Input::Timeout,
            Input::Connected { peer, route } => Input::Connected { peer, route },
            Input::Disconnected { peer } => Input::Disconnected { peer },
            Input::Received { from, via, bytes } => Input::Received { from, via, bytes },
            Input::Resumed => Input::Resumed,
            Input::Command(CommandLineChange::Command(command)) => Input::Command(command),
            Input::Command(CommandLineChange::Authority(authority)) => {
                return add_authority(&mut self.0, *authority);
            }
            Input::Command(CommandLineChange::Share(share)) => {
                return Release::hold(&mut self.0.parts_mut().shares, *share);
            }
        };
        self.0.handle_input(now, input, rng);
    }

    fn poll_output(&mut self) -> Output<ServingEvent, ServingRecord> {
        self.0.poll_output()
    }
}
