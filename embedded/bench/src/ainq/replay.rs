//! Replays a script to an edge.

use alloc::format;

use quiver_ainq::{Error, Header, Label, RevocationStatement, Ristretto255, Signature, VerifiedHeader};
use quiver_group::{Edge, EdgeConfig, EdgeEvent};
use quiver_machine::{Input, Machine, Now, Output, Peer, Route, Via};
use quiver_message::Message;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::script::{Cue, Script, ScriptInput};
use crate::BenchTarget;
use crate::error::{BenchError, Result};
use crate::runner::{Probe, Runner, Subject};
use crate::statistics::Sample;

type S = Ristretto255;

/// The one connection of the edge.
const LEADER: Peer = Peer(1);

/// The part of a message's handling that is measured.
#[derive(Clone, Copy)]
pub(super) enum MeasuredPart {
    /// The message from its bytes to the key in use.
    Whole(Cue),
    /// The same without its header's signature: decoding and verifying it.
    Unsigned(Cue),
    /// The verification of the header.
    Header(Cue),
}

impl MeasuredPart {
    const fn cue(self) -> Cue {
        match self {
            Self::Whole(cue) | Self::Unsigned(cue) | Self::Header(cue) => cue,
        }
    }
}

/// Measures the steps with this cue, replaying the script from the start as often as it takes.
pub(super) async fn measure<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    operation: &str,
    part: MeasuredPart,
    script: &[u8],
) -> Result<()> {
    let script = Script::decode(script).map_err(|_| BenchError::Failed("the script"))?;
    if !script.steps.iter().any(|step| step.cue == part.cue()) {
        return Err(BenchError::Failed("the script has none"));
    }
    let parameters = format!("group of {}", script.members);
    let benchmark = format!("ainq {operation}");
    let subject = Subject { benchmark: &benchmark, parameters: &parameters };
    let mut replay = ScriptReplay::new(&script)?;
    runner.measure(subject, |probe| replay.next(&script, part, probe)).await
}

/// The edge of a script once it has its first key, and the time then.
pub(crate) fn member(script: &Script<'_>) -> Result<(Edge<S>, Now)> {
    let mut replay = ScriptReplay::new(script)?;
    for step in &script.steps {
        replay.take(script, step);
        if replay.drain() {
            return Ok((replay.edge, script.now(step)));
        }
    }
    Err(BenchError::Failed("the script has no key"))
}

struct ScriptReplay {
    edge: Edge<S>,
    rng: ChaCha20Rng,
    /// Steps taken so far.
    taken: usize,
}

impl ScriptReplay {
    fn new(script: &Script<'_>) -> Result<Self> {
        let config = EdgeConfig::new(script.deployment.clone(), Some(script.group.clone()), None);
        let edge =
            Edge::new(config, Some(&script.state)).map_err(|_| BenchError::Failed("the edge's state"))?;
        Ok(Self { edge, rng: ChaCha20Rng::seed_from_u64(script.seed), taken: 0 })
    }

    /// Goes on to the next message of the kind, and measures it.
    fn next<H: BenchTarget>(
        &mut self,
        script: &Script<'_>,
        part: MeasuredPart,
        probe: &mut Probe<'_, H>,
    ) -> Result<Sample> {
        loop {
            let Some(step) = script.steps.get(self.taken) else {
                *self = Self::new(script)?;
                continue;
            };
            self.taken += 1;
            if step.cue == part.cue() {
                return self.sample(script, step, part, probe);
            }
            self.take(script, step);
            self.drain();
        }
    }

    fn sample<H: BenchTarget>(
        &mut self,
        script: &Script<'_>,
        step: &ScriptInput<'_>,
        part: MeasuredPart,
        probe: &mut Probe<'_, H>,
    ) -> Result<Sample> {
        if let MeasuredPart::Header(_) = part {
            let (verified, sample) = verify(script, step, probe)?;
            self.take(script, step);
            self.drain();
            return verified.map(|_| sample).map_err(|_| BenchError::Failed("the header"));
        }
        let ((), whole) = probe.time(|| self.take(script, step));
        if !self.drain() {
            return Err(BenchError::Failed("no key came of it"));
        }
        match part {
            MeasuredPart::Unsigned(_) => Ok(whole.without(signature(script, step, probe)?)),
            _ => Ok(whole),
        }
    }

    fn take(&mut self, script: &Script<'_>, step: &ScriptInput<'_>) {
        let input = match step.cue {
            Cue::Timeout => Input::Timeout,
            Cue::Connected => Input::Connected { peer: LEADER, route: Route::Leader },
            // A script does not say by which way: what brings a key is taken alike.
            _ => Input::Received { from: LEADER, via: Via::Peer, bytes: step.bytes },
        };
        self.edge.handle_input(script.now(step), input, &mut self.rng);
    }

    /// Executes the machine's outputs; returns whether a new key is in use.
    fn drain(&mut self) -> bool {
        let mut activated = false;
        loop {
            match self.edge.poll_output() {
                Output::Timeout(_) => return activated,
                Output::Event(EdgeEvent::KeyActivated { .. }) => activated = true,
                _ => {}
            }
        }
    }
}

/// Verifies the header of a message, decoded beforehand, as an edge does.
fn verify<H: BenchTarget>(
    script: &Script<'_>,
    step: &ScriptInput<'_>,
    probe: &mut Probe<'_, H>,
) -> Result<(Result<VerifiedHeader<S>, Error>, Sample)> {
    let header = header(script, step)?;
    let (list, unix) = (RevocationStatement::empty(), script.now(step).unix);
    Ok(probe.time(|| header.verify(&script.deployment, &script.group, None, &list, unix)))
}

/// Decodes and verifies the signature of a message's header, as an edge does that knows the leader's Y
/// already.
fn signature<H: BenchTarget>(
    script: &Script<'_>,
    step: &ScriptInput<'_>,
    probe: &mut Probe<'_, H>,
) -> Result<Sample> {
    const FAILED: BenchError = BenchError::Failed("the header's signature");
    let header = header(script, step)?;
    let (deployment, digest) = (&script.deployment, header.digest(&script.deployment));
    let (bytes, mut leader) = (header.signature.encode(), header.core.leader);
    leader.remember_implicit(deployment).map_err(|_| FAILED)?;
    let check = || Signature::<S>::decode(&bytes)?.verify(deployment, &leader, Label::Header, &digest);
    let (verified, sample) = probe.time(check);
    verified.map(|()| sample).map_err(|_| FAILED)
}

/// The header of a message; a short one is completed with that of the message before it that has one.
fn header(script: &Script<'_>, step: &ScriptInput<'_>) -> Result<Header<S>> {
    let mut newest: Option<Header<S>> = None;
    for told in &script.steps {
        match Message::<S>::decode(&script.deployment, told.bytes) {
            Ok(Message::Welcome(welcome)) => newest = Some(welcome.header),
            Ok(Message::Rekey(rekey)) => newest = Some(rekey.header),
            Ok(Message::ShortRekey(short)) => {
                // A part of the epoch's wraps, or the epoch again, builds on none that is newer.
                let whole = newest.as_ref().and_then(|before| {
                    let digest = before.digest(&script.deployment);
                    short.header.rebuild(&before.core, &digest, &short.wraps).ok()
                });
                if whole.is_none() && core::ptr::eq(told, step) {
                    return Err(BenchError::Failed("a short header"));
                }
                newest = whole.or(newest);
            }
            _ => {}
        }
        if core::ptr::eq(told, step) {
            break;
        }
    }
    newest.ok_or(BenchError::Failed("the script's message"))
}
