//! The application's side of a driver.

use libp2p::{Multiaddr, PeerId};
use quiver_machine::{Machine, Peer, Route};

use crate::error::HostError;

/// Callbacks of the application for the machine that the driver runs.
///
/// All methods are called from the task that runs the driver, one at a time.
pub trait Host<M: Machine>: Send {
    /// Makes the records durable, in order. Called once for a whole batch of inputs.
    ///
    /// The call may block for as long as a disk takes. Inside a multi-threaded runtime, a host with slow
    /// storage can wrap its work in `tokio::task::block_in_place`.
    ///
    /// # Errors
    /// If the records are not durable. The driver logs it, sends nothing, takes no input, and calls again
    /// with the same records every second until it succeeds or the driver is shut down.
    fn persist(&mut self, records: &[M::Record]) -> Result<(), HostError>;

    /// The same with the machine at hand, which has taken the inputs that the records are of: a host that
    /// keeps a journal may put the machine's whole state in place of one that has grown long. The driver
    /// calls this one.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    fn persist_of(&mut self, machine: &M, records: &[M::Record]) -> Result<(), HostError> {
        let _ = machine;
        self.persist(records)
    }

    /// Receives an event. The machine may already be ahead of it by the rest of the batch.
    fn event(&mut self, machine: &M, event: M::Event);

    /// Receives that a peer has connected, right before the machine does. `place`: its address, for people.
    fn connected(&mut self, peer: Peer, route: Route, place: &str) {
        let _ = (peer, route, place);
    }

    /// Receives that the last connection with a peer is lost, right before the machine does.
    fn disconnected(&mut self, peer: Peer) {
        let _ = peer;
    }

    /// Receives an address on which the node really listens (a port 0 is resolved).
    fn listening(&mut self, address: &Multiaddr) {
        let _ = address;
    }

    /// Signs the time of this node's clock, for a peer that it dialled; empty if it has no key, or must not
    /// be linkable.
    fn vouch(&mut self, machine: &M, statement: &[u8]) -> Vec<u8> {
        let _ = (machine, statement);
        Vec::new()
    }

    /// The drone that signed the time sent by an inbound peer; `None` if the answer does not count.
    fn voucher(&mut self, machine: &M, statement: &[u8], signed: &[u8]) -> Option<String> {
        let _ = (machine, statement, signed);
        None
    }

    /// The drone behind this connection, as far as the machine knows: for reports to people.
    fn drone(&mut self, machine: &M, peer: Peer) -> Option<String> {
        let _ = (machine, peer);
        None
    }

    /// The member over this connection that is proven, as far as the machine knows, by any name that no other
    /// has: the places of a node's lists of proven peers are shared out among members, and not among the
    /// transport keys that one of them may make. Those without a name share by the address that they came
    /// from.
    fn member(&mut self, machine: &M, peer: Peer) -> Option<String> {
        self.drone(machine, peer)
    }

    /// Receives every frame between the node and one peer, in either direction: the id of the request that it
    /// belongs to (empty for a message to the group) and the message, as they are on the wire; and, without a
    /// peer, its messages to the whole group. For tests of what makes a peer traceable.
    fn frame(&mut self, peer: Option<&PeerId>, request: &[u8], message: &[u8]) {
        let _ = (peer, request, message);
    }

    /// Called right before the machine is given a batch of inputs.
    fn before_inputs(&mut self) {}

    /// Called right after the machine has taken a batch of inputs and its outputs are drained, on the same
    /// thread. Between the two calls nothing but the machine runs, so that its CPU time can be measured.
    fn after_inputs(&mut self) {}
}
