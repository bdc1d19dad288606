//! Measures files of many sizes, and many files.

use quiver_age::{Identity, Recipient};
use quiver_ibe::MasterPublicKey;
use quiver_report::{Experiment, Ink, Observer};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::comparison::{MeasuredVariant, SAME, StageComparison, plot};
use super::files::{condition, open, seal, seal_to};
use super::plan::IbePlan;
use super::published::{PublishedIbe, PublishedStage};
use super::quorum::{IbeQuorum, ShareForm, end_to_end};
use super::summary::method;
use crate::measure::{Timing, repeat, repeat_wall};
use crate::{LabError, Result};

/// Validators of the published benchmark by sizes.
const VALIDATORS: u32 = 4;

/// Message as long as the published benchmark's.
const MESSAGE: &[u8] = &[b'm'; 47];

/// Sender and reader.
struct IbeParties {
    master: MasterPublicKey,
    identity: Identity,
    /// Recipient, whose point and pairing are kept.
    recipient: Recipient,
}

impl IbeParties {
    fn new(plan: &IbePlan) -> Result<Self> {
        let mut quorum = IbeQuorum::of(VALIDATORS, plan.seed)?;
        let (master, identity) = (*quorum.publics.master(), quorum.identity()?);
        Ok(Self { master, identity, recipient: Recipient::new(master, condition()?) })
    }

    /// A file that was opened once, and what was in it came out.
    fn file(&self, message: &[u8]) -> Result<Vec<u8>> {
        let file = seal(&self.master, message)?;
        if open(&file, &self.identity)? == message {
            Ok(file)
        } else {
            Err(LabError::WrongKey("decrypting a file"))
        }
    }

    /// Encrypts so many times: with nothing kept, and with the recipient kept.
    fn encryptions(&self, plan: &IbePlan, count: u32, message: &[u8]) -> Result<Vec<Timing>> {
        self.file(message)?;
        let fresh = repeat(plan.effort, || (0..count).all(|_| seal(&self.master, message).is_ok()));
        let kept = repeat(plan.effort, || (0..count).all(|_| seal_to(&self.recipient, message).is_ok()));
        Ok(vec![fresh, kept])
    }

    fn opens(&self, file: &[u8]) -> bool {
        open(file, &self.identity).is_ok()
    }
}

/// A stage with what `measure` finds for each published parameter.
fn stage(
    (published, bound): (&PublishedIbe, u32),
    about: StageComparison,
    observer: &mut dyn Observer,
    mut measure: impl FnMut(u32) -> Result<Vec<Timing>>,
) -> Result<StageComparison> {
    let parameters = published.parameters(about.stage, bound);
    observer.begin(about.caption, parameters.len());
    let mut rows = Vec::new();
    for parameter in parameters {
        rows.push((parameter, measure(parameter)?));
        observer.advance(1);
    }
    Ok(StageComparison { rows, ..about })
}

fn nothing_yet(
    slug: &'static str,
    caption: &'static str,
    stage: PublishedStage,
    parameter: &'static str,
    ways: Vec<MeasuredVariant>,
) -> StageComparison {
    StageComparison { slug, caption, stage, parameter, ways, rows: Vec::new(), notes: Vec::new() }
}

const KEPT: MeasuredVariant = MeasuredVariant { key: "kept", title: "here, recipient kept", ink: Ink::Tree };

/// Measures the stages by bytes of a message.
pub(super) fn sizes(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let (world, bound) = (IbeParties::new(plan)?, (published, plan.bytes));
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let about = |slug, caption, stage, ways| nothing_yet(slug, caption, stage, "bytes", ways);
    let all =
        about("size-end-to-end", "End to end with 4 validators", PublishedStage::EndToEndBytes, vec![SAME]);
    let all = stage(bound, all, observer, |bytes| {
        let message = message(bytes);
        end_to_end(VALIDATORS, ShareForm::Memory, &message, &mut rng)?;
        let pass = || end_to_end(VALIDATORS, ShareForm::Memory, &message, &mut rng).is_ok();
        Ok(vec![repeat(plan.effort, pass)])
    })?;
    let encrypt = about("size-encrypt", "Encrypt a file", PublishedStage::EncryptBytes, vec![SAME, KEPT]);
    let encrypt = stage(bound, encrypt, observer, |bytes| world.encryptions(plan, 1, &message(bytes)))?;
    let decrypt = about("size-decrypt", "Decrypt a file", PublishedStage::DecryptBytes, vec![SAME]);
    let decrypt = stage(bound, decrypt, observer, |bytes| {
        let file = world.file(&message(bytes))?;
        Ok(vec![repeat(plan.effort, || world.opens(&file))])
    })?;
    Ok(by_size(plan, published, &[all, encrypt, decrypt]))
}

fn message(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|place| place.to_le_bytes()[0]).collect()
}

fn by_size(plan: &IbePlan, published: &PublishedIbe, stages: &[StageComparison]) -> Experiment {
    Experiment {
        slug: "message-size".into(),
        title: "Files of 8 bytes to 1 MB".into(),
        about: vec![
            "Only the file's key is encrypted to the condition; the file itself is encrypted under that key with \
             ChaCha20-Poly1305, in the format age v1. So the time should be constant at first and then grow with the file."
                .into(),
        ],
        published: vec!["Wall time of the whole file. End to end with 4 validators, all of whom are needed.".into()],
        method: method(plan),
        differences: vec![
            "The published times of encryption do not grow with the file at all; what that many bytes cost is not in them. Ours \
             encrypts and decrypts every byte in every repetition."
                .into(),
            "Recipient kept: the condition's point and pairing were computed before, as for everything after the first file.".into(),
        ],
        plots: vec![plot("message-size", "Files by size", published, stages)],
        tables: stages.iter().map(|stage| stage.table(published)).collect(),
    }
}

/// Measures the stages by number of messages.
pub(super) fn numbers(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let (world, bound) = (IbeParties::new(plan)?, (published, plan.messages));
    let file = world.file(MESSAGE)?;
    let about = |slug, caption, stage, ways| nothing_yet(slug, caption, stage, "messages", ways);
    let encrypt = about("encrypt", "Encrypt messages", PublishedStage::Encrypt, vec![SAME, KEPT]);
    let encrypt = stage(bound, encrypt, observer, |count| world.encryptions(plan, count, MESSAGE))?;
    let decrypt = about("decrypt", "Decrypt messages", PublishedStage::Decrypt, vec![SAME]);
    let decrypt = stage(bound, decrypt, observer, |count| {
        Ok(vec![repeat(plan.effort, || (0..count).all(|_| world.opens(&file)))])
    })?;
    let parallel = about(
        "decrypt-parallel",
        "Decrypt messages on all cores",
        PublishedStage::DecryptParallel,
        vec![SAME],
    );
    let mut parallel = stage(bound, parallel, observer, |count| {
        Ok(vec![repeat_wall(plan.effort, || (0..count).into_par_iter().all(|_| world.opens(&file)))])
    })?;
    parallel.notes.push(
        "Wall time, on as many cores as each machine has: the published ratio of the two decryptions is 6, so there \
         were more of them. What else the machine does counts here."
            .into(),
    );
    Ok(by_number(plan, published, &[encrypt, decrypt, parallel]))
}

fn by_number(plan: &IbePlan, published: &PublishedIbe, stages: &[StageComparison]) -> Experiment {
    Experiment {
        slug: "messages".into(),
        title: "Many messages".into(),
        about: vec!["One message after the other to one condition, and the same file opened again and again.".into()],
        published: vec!["Wall time of so many files of 47 bytes, one after the other or each in a goroutine of its own.".into()],
        method: method(plan),
        differences: vec![
            "The published code hashes the identity and computes the pairing for every message. So does the first of our columns; \
             the second keeps both, as Quiver does."
                .into(),
        ],
        plots: vec![plot("messages", "Many messages", published, stages)],
        tables: stages.iter().map(|stage| stage.table(published)).collect(),
    }
}
