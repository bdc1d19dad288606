//! Confirms that a message was sent under a key that the group has: the leader has answered after it, and has proven
//! since then that the message's epoch is current (docs/protocol.md, 11.1).
//!
//! That the leader answers is not enough. Another process with a copy of this drone's state may have taken its slot:
//! then the leader drops what this one seals under the former key, and answers all the same.

use std::time::Duration;

use quiver_group::EdgeCommand;
use quiver_group::edge::EdgeStatus;
use quiver_machine::Either;
use quiver_service::drone::RunningDrone;
use quiver_service::drone::feature::GroupEdge;
use quiver_service::drone::running::ENDING;
use quiver_service::drone::send::Handed;
use tokio::time::{Instant, sleep};

/// Time for a leader to prove which epoch is current.
const PROOF_TIME: Duration = Duration::from_secs(5);
/// Interval at which it is checked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// A running edge.
type RunningEdge = RunningDrone<GroupEdge>;

/// Reason while another process has this drone's identity: nobody knows which of the two the leader takes messages of.
pub(crate) const COPY: &str = "another process runs with a copy of this drone's state: end the copy";
/// Reason while no leader is connected and has proven to lead.
pub(crate) const NO_LEADER: &str = "no leader of the group takes it";
const NOT_CONFIRMED: &str = "no leader has confirmed it";
const NOT_CURRENT: &str = "no leader has confirmed that its key is the current one";

async fn status(running: &RunningEdge) -> Result<EdgeStatus, String> {
    running.machine.inspect(|machine| machine.status()).await.map_err(|_| ENDING.into())
}

/// Hands a message to the leader's connection, and notes the epoch that it was sealed for.
///
/// # Errors
/// In words, why it can never be sent.
pub(crate) async fn send(running: &RunningEdge, command: EdgeCommand) -> Result<Option<Handed>, String> {
    let before = status(running).await?.digest;
    let handed = running.send(Either::Left(command)).await?;
    let after = status(running).await?.digest;
    // Epochs follow one another: what is the same before and after was so in between.
    let epoch = before.filter(|_| before == after);
    Ok(handed.map(|handed| Handed { epoch, ..handed }))
}

/// Confirms a message to the group.
///
/// # Errors
/// In words, why it may not have arrived.
pub(crate) async fn confirm(running: &RunningEdge, handed: Handed) -> Result<(), &'static str> {
    if handed.leader.is_none() {
        // Nobody confirms what an anonymous drone sends.
        return Ok(());
    }
    if !running.is_confirmed(handed).await {
        return Err(NOT_CONFIRMED);
    }
    let Some(epoch) = handed.epoch else { return Err(NOT_CURRENT) };
    if !is_current(running, &epoch).await {
        return Err(NOT_CURRENT);
    }
    if running.machine.duplicate_identity().is_some() { Err(COPY) } else { Ok(()) }
}

/// Returns true if a leader proves, by its answer to a question that is asked from now on, that the epoch of
/// this digest is the current one.
async fn is_current(running: &RunningEdge, epoch: &[u8; 32]) -> bool {
    let Ok(before) = status(running).await else { return false };
    let deadline = Instant::now() + PROOF_TIME;
    while Instant::now() < deadline {
        let Ok(status) = status(running).await else { return false };
        if !status.synced || status.digest.as_ref() != Some(epoch) {
            return false;
        }
        if status.proven > before.asked {
            return true;
        }
        // A question that was under way before this is not asked again until it is answered.
        if running.machine.command(Either::Left(EdgeCommand::CatchUp)).await.is_err() {
            return false;
        }
        sleep(LOOK).await;
    }
    false
}
