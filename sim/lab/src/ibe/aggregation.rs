//! Measures encryption end to end, and the aggregation of key shares.

use quiver_report::{Experiment, Ink, Observer};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::comparison::{MeasuredVariant, SAME, StageComparison, plot};
use super::plan::IbePlan;
use super::published::{PublishedIbe, PublishedStage};
use super::quorum::{IbeQuorum, ShareForm, end_to_end as pass};
use super::summary::method;
use crate::Result;
use crate::measure::{Timing, repeat};

/// Message as long as the published benchmark's.
const MESSAGE: &[u8] = &[b'm'; 47];

const ALONE: MeasuredVariant =
    MeasuredVariant { key: "alone", title: "here, each extracted alone", ink: Ink::Extra };
const FROM_BYTES: MeasuredVariant =
    MeasuredVariant { key: "from_bytes", title: "here, from bytes", ink: Ink::Tree };

/// Arrivals that include extraction, and those of shares already extracted, in the order of the columns.
const EXTRACTED: [ShareForm; 3] = [ShareForm::Memory, ShareForm::Alone, ShareForm::Bytes];
const COLLECTED: [ShareForm; 2] = [ShareForm::Memory, ShareForm::Bytes];

/// Measures all stages together, by validators.
pub(super) fn end_to_end(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let counts = published.parameters(PublishedStage::EndToEnd, plan.validators);
    observer.begin("end to end", counts.len());
    let (mut rng, mut rows) = (ChaCha20Rng::seed_from_u64(plan.seed), Vec::new());
    for count in counts {
        let mut timings = Vec::new();
        for arrival in EXTRACTED {
            pass(count, arrival, MESSAGE, &mut rng)?;
            timings.push(repeat(plan.effort, || pass(count, arrival, MESSAGE, &mut rng).is_ok()));
        }
        rows.push((count, timings));
        observer.advance(1);
    }
    let stages = [StageComparison {
        slug: "end-to-end",
        caption: "End to end, a message of 47 bytes",
        stage: PublishedStage::EndToEnd,
        parameter: "validators",
        ways: vec![SAME, ALONE, FROM_BYTES],
        rows,
        notes: Vec::new(),
    }];
    Ok(Experiment {
        slug: "end-to-end".into(),
        title: "End to end".into(),
        about: vec![
            "A dealer shares a master key, somebody encrypts a file to a condition, every validator extracts its share of the \
             condition's key, the shares are combined, and the file is opened."
                .into(),
        ],
        published: vec![
            "Wall time of all of it in one process. All n validators take part and all n shares are combined. Shares of keys \
             are points in memory that nobody encodes; each is verified with two pairings, then they are combined one by one."
                .into(),
        ],
        method: method(plan),
        differences: vec![
            "Ours combines first and checks the key with two pairings, whatever n is. It looks for wrong shares only if there is one; \
             then it names who sent them, as the published code does."
                .into(),
            "Here one process has every validator's share of the master key, and extracts by one table of the identity's point, still in constant time. \
             A validator by itself has one share and no use for a table: that is \"each extracted alone\", and so are those from bytes."
                .into(),
            "Ours counts Feldman's commitments, every validator's public share and a check that they are consistent.".into(),
            "From bytes: every share is encoded in 98 bytes and decoded, with a check of its subgroup, as over a network.".into(),
        ],
        plots: vec![plot("end-to-end", "End to end", published, &stages)],
        tables: stages.iter().map(|stage| stage.table(published)).collect(),
    })
}

/// Keys out of shares.
pub(super) fn aggregate(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let counts = published.parameters(PublishedStage::Aggregate, plan.shares);
    let extracted = published.parameters(PublishedStage::ExtractAndAggregate, u32::MAX);
    observer.begin("aggregation", counts.len() + extracted.len());
    let rows = timed(plan, &counts, &COLLECTED, IbeQuorum::aggregate, observer)?;
    let aggregate = StageComparison {
        slug: "aggregate",
        caption: "Combine and verify shares of a key",
        stage: PublishedStage::Aggregate,
        parameter: "validators",
        ways: vec![SAME, FROM_BYTES],
        rows,
        notes: Vec::new(),
    };
    let both = StageComparison {
        slug: "extract-and-aggregate",
        caption: "Extract all shares of a key, combine and verify them",
        stage: PublishedStage::ExtractAndAggregate,
        rows: timed(plan, &extracted, &EXTRACTED, IbeQuorum::extract_and_aggregate, observer)?,
        notes: vec![
            "Extraction is one multiplication in G2 per share, in constant time, here by one table for all of them; combining counts little beside it.".into(),
            "A version of the published benchmark extracts the shares of the first 100 of the 128 validators; ours extracts all 128."
                .into(),
        ],
        ways: vec![SAME, ALONE, FROM_BYTES],
        ..aggregate
    };
    Ok(Experiment {
        slug: "aggregate".into(),
        title: "A key out of its shares".into(),
        about: vec![
            "Whoever collects shares of a key must know that the key is right, and if not, whom to blame.".into(),
        ],
        published: vec![
            "Wall time of verifying n shares, two pairings and a hash to the curve each, and combining them. Shares and public \
             shares are points in memory."
                .into(),
        ],
        method: method(plan),
        differences: vec![
            "Ours is one multi-scalar multiplication and two pairings as long as nobody lies. The identity's point is kept.".into(),
            "From bytes: the same from 98 bytes for each share, each checked to lie in the subgroup: that is what a drone does.".into(),
        ],
        plots: vec![plot("aggregate", "Combine and verify", published, std::slice::from_ref(&aggregate))],
        tables: vec![both.table(published), aggregate.table(published)],
    })
}

/// An operation of quorums of these sizes.
fn timed<R>(
    plan: &IbePlan,
    counts: &[u32],
    arrivals: &[ShareForm],
    operation: impl Fn(&mut IbeQuorum, ShareForm) -> Result<R>,
    observer: &mut dyn Observer,
) -> Result<Vec<(u32, Vec<Timing>)>> {
    let mut rows = Vec::new();
    for &count in counts {
        let mut quorum = IbeQuorum::of(count, plan.seed)?;
        let mut timings = Vec::new();
        for &arrival in arrivals {
            operation(&mut quorum, arrival)?;
            timings.push(repeat(plan.effort, || operation(&mut quorum, arrival).is_ok()));
        }
        rows.push((count, timings));
        observer.advance(1);
    }
    Ok(rows)
}
