//! Sends messages to the group: to whose connections one was handed, whether the leader confirms it, and what is
//! said about it.

use std::time::Duration;

use quiver_ainq::Ristretto255;
use quiver_machine::{Peer, Primary};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::machine::{Command, DroneMachine};
use super::request::{Answered, json};
use super::running::{ENDING, RunningDrone};

/// Time for the leader to confirm a message.
const CONFIRMATION: Duration = Duration::from_secs(5);
/// Attempts while nobody takes the group's messages: who has just connected is about to prove that it leads, and
/// to say that it does.
const ATTEMPTS: usize = 6;
/// Pause between them.
const PAUSE: Duration = Duration::from_millis(200);

/// Node that passes a drone's messages on to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRelay {
    /// The leader, which confirms them.
    Leader(Peer),
    /// A leader that is connected and has not proven yet that it leads.
    Awaited,
    /// No node: no leader is connected.
    Nobody,
    /// The connected peers, and nobody confirms: this drone is the leader, or anonymous, and what it asks could
    /// make it known again.
    Peers,
}

/// The ways of a role's messages to its group.
#[derive(Debug)]
pub struct Paths<P: Primary<Suite = Ristretto255>> {
    /// Chooses the node that passes them on.
    pub relay: fn(&P) -> GroupRelay,
    /// Counts how many of these connections, to which one was handed, lead to those it is for. Not asked if a
    /// leader passes it on.
    pub audience: fn(&DroneMachine<P>, &[Peer]) -> usize,
}

impl<P: Primary<Suite = Ristretto255>> Clone for Paths<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Primary<Suite = Ristretto255>> Copy for Paths<P> {}

/// A message that was handed to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Number of connections.
    pub connections: usize,
    /// The leader that passes it on and can confirm it.
    pub leader: Option<Peer>,
    /// The digest of the epoch that it was sealed for, if that is known.
    pub epoch: Option<[u8; 32]>,
}

/// Outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SendOutcome {
    /// The leader confirmed it; or, by a leader or an anonymous drone, it was handed to connections.
    Sent,
    /// The message is kept, durably, until a leader is there.
    Queued,
}

/// The answer to whoever sends a message, unless it is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendReport {
    /// Outcome of the message.
    pub outcome: SendOutcome,
    /// Number of connections that the message was handed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// Number of messages that wait, with this one, if it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<usize>,
    /// Reason why it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SendReport {
    /// Reports a message that was handed to this number of connections.
    #[must_use]
    pub const fn sent(connections: usize) -> Self {
        Self { outcome: SendOutcome::Sent, connections: Some(connections), queued: None, reason: None }
    }

    /// Reports a message that is kept.
    #[must_use]
    pub const fn queued(waiting: usize, reason: String) -> Self {
        Self { outcome: SendOutcome::Queued, connections: None, queued: Some(waiting), reason: Some(reason) }
    }

    /// Describes the report for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self { outcome: SendOutcome::Queued, queued, reason, .. } => {
                let (waiting, reason) = (queued.unwrap_or_default(), reason.as_deref().unwrap_or_default());
                format!("queued: {reason} ({waiting} waiting)")
            }
            Self { connections: Some(connections), .. } if *connections > 1 => {
                format!("sent to {connections} connections")
            }
            Self { .. } => "sent".into(),
        }
    }
}

impl<P> RunningDrone<P>
where
    P: Primary<Suite = Ristretto255> + Send + Sync + 'static,
    Command<P>: Clone + Send,
{
    /// Hands what this command makes to the connection of the leader, or of whoever takes the group's messages.
    /// `None` if there is none.
    ///
    /// # Errors
    /// In words, why it can never be sent.
    pub async fn send(&self, command: Command<P>) -> Result<Option<Handed>, String> {
        let _turn = self.sending.lock().await;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                sleep(PAUSE).await;
            }
            let Paths { relay, audience } = self.paths;
            let relay = self.machine.inspect(move |machine| relay(machine)).await.map_err(|_| ENDING)?;
            let leader = match relay {
                GroupRelay::Nobody => return Ok(None),
                GroupRelay::Awaited => continue,
                GroupRelay::Leader(leader) => Some(leader),
                GroupRelay::Peers => None,
            };
            let mut failures = self.failures.subscribe();
            let handed = self.machine.publish(command.clone()).await.map_err(|_| ENDING)?;
            if let Ok(reason) = failures.try_recv() {
                return Err(format!("not sent: {reason}"));
            }
            let connections = match leader {
                Some(leader) if handed.contains(&leader) => handed.len(),
                Some(_) => 0,
                None => {
                    let count = move |machine: &DroneMachine<P>| audience(machine, &handed);
                    self.machine.inspect(count).await.map_err(|_| ENDING)?
                }
            };
            if connections > 0 {
                return Ok(Some(Handed { connections, leader, epoch: None }));
            }
        }
        Ok(None)
    }

    /// Returns true if the leader has answered after the message was handed to its connection, or if nobody
    /// is to confirm.
    pub async fn is_confirmed(&self, handed: Handed) -> bool {
        let Some(leader) = handed.leader else { return true };
        let confirmed = timeout(CONFIRMATION, self.machine.confirm(leader)).await;
        confirmed.is_ok_and(|confirmed| confirmed == Ok(true))
    }

    /// Sends, and says that it was sent or why not.
    pub async fn send_and_report(&self, command: Command<P>) -> Answered {
        match self.send(command).await? {
            None => Err("not sent: nobody is connected who passes it on to the group; try again".into()),
            Some(handed) if self.is_confirmed(handed).await => json(&SendReport::sent(handed.connections)),
            Some(_) => {
                Err("not confirmed: the leader does not answer, and may have lost it; try again".into())
            }
        }
    }
}
