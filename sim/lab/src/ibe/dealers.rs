//! Measures dealing and verifying shares of a secret: with Feldman's commitments and with KZG's.

use quiver_ibe::{Dealing, UnverifiedMasterShare};
use quiver_report::{Experiment, Ink, Observer};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::comparison::{MeasuredVariant, SAME, StageComparison, plot};
use super::kzg::InsecureDealing;
use super::plan::IbePlan;
use super::published::{PublishedIbe, PublishedStage};
use super::summary::method;
use crate::measure::{Timing, repeat};
use crate::{LabError, Result};

const AT_ONCE: MeasuredVariant =
    MeasuredVariant { key: "at_once", title: "here, all at once", ink: Ink::Tree };
const BY_PROOFS: MeasuredVariant =
    MeasuredVariant { key: "by_proofs", title: "at once, by each proof", ink: Ink::Extra };
const BY_THE_CRATE: MeasuredVariant =
    MeasuredVariant { key: "batch_check", title: "the crate's batch check", ink: Ink::Rival };

/// Measurements of one kind of commitments.
struct DealerTimings {
    generated: Vec<(u32, Vec<Timing>)>,
    /// One by one, and at once, in each way.
    verified: Vec<(u32, Vec<Timing>)>,
}

/// Measures by validators. `one` gives the time of making, and of verifying one by one and at once in each
/// way, for a threshold of one less than the validators, as the published benchmarks have it.
fn by_validators(
    counts: &[u32],
    observer: &mut dyn Observer,
    mut one: impl FnMut(u32, u32) -> Result<(Timing, Vec<Timing>)>,
) -> Result<DealerTimings> {
    let mut measured = DealerTimings { generated: Vec::new(), verified: Vec::new() };
    for &count in counts {
        let (generate, verified) = one(count.saturating_sub(1).max(1), count)?;
        measured.generated.push((count, vec![generate]));
        measured.verified.push((count, verified));
        observer.advance(1);
    }
    Ok(measured)
}

/// Feldman's commitments.
pub(super) fn feldman(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let counts = published.parameters(PublishedStage::VssVerify, plan.validators);
    observer.begin("Feldman", counts.len());
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let measured = by_validators(&counts, observer, |threshold, count| {
        let (threshold, count) = (narrow(threshold), narrow(count));
        let generate = repeat(plan.effort, || Dealing::deal(threshold, count, &mut rng).is_ok());
        let dealing = Dealing::deal(threshold, count, &mut rng)?;
        let commitment = dealing.commitment();
        let shares: Vec<_> = dealing.shares().iter().cloned().map(UnverifiedMasterShare::new).collect();
        let each = || shares.iter().all(|share| share.clone().verify(commitment).is_ok());
        if !each() {
            return Err(LabError::RefusedShare("Feldman"));
        }
        commitment.verify_batch(shares.clone(), &mut rng)?;
        let at_once = repeat(plan.effort, || commitment.verify_batch(shares.clone(), &mut rng).is_ok());
        Ok((generate, vec![repeat(plan.effort, each), at_once]))
    })?;
    let stages = [
        comparison(
            "vss-verify",
            "Verify all shares, Feldman",
            PublishedStage::VssVerify,
            vec![SAME, AT_ONCE],
            measured.verified,
        ),
        comparison(
            "vss-generate",
            "Make shares, Feldman",
            PublishedStage::VssGenerate,
            vec![SAME],
            measured.generated,
        ),
    ];
    Ok(Experiment {
        slug: "vss".into(),
        title: "Shares with Feldman's commitments".into(),
        about: vec![
            "Whoever gets a share of a master key checks that it is one, by powers of its index and the dealer's commitment to every \
             coefficient. No setup, no pairing."
                .into(),
        ],
        published: vec![
            "Wall time of making n shares and n − 1 commitments; and of verifying all n shares, one by one.".into(),
        ],
        method: method(plan),
        differences: vec![
            "One by one, ours multiplies by the index, a small number, again and again (Horner), where the published code \
             multiplies each commitment by a power of it, a large one."
                .into(),
            "All at once: random weights of 128 bits, one multi-scalar multiplication for all shares. In a real quorum each verifies \
             its own; who audits a dealing, or repairs a quorum, verifies many."
                .into(),
        ],
        plots: vec![plot("vss", "Feldman's commitments", published, &stages)],
        tables: stages.iter().map(|stage| stage.table(published)).collect(),
    })
}

/// KZG's commitments, under an insecure test setup.
pub(super) fn kzg(
    plan: &IbePlan,
    published: &PublishedIbe,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let counts = published.parameters(PublishedStage::KzgVerify, plan.validators);
    observer.begin("KZG", counts.len());
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let measured = by_validators(&counts, observer, |threshold, count| {
        let generate = repeat(plan.effort, || InsecureDealing::deal(threshold, count, &mut rng).is_ok());
        let dealing = InsecureDealing::deal(threshold, count, &mut rng)?;
        let at_once = dealing.verify_batch(&mut rng)?
            && dealing.verify_by_sums(&mut rng)
            && dealing.verify_by_opening();
        if !dealing.verify_each()? || !at_once {
            return Err(LabError::RefusedShare("KZG"));
        }
        let each = repeat(plan.effort, || dealing.verify_each().is_ok());
        let batch = repeat(plan.effort, || dealing.verify_batch(&mut rng).is_ok());
        let by_sums = repeat(plan.effort, || dealing.verify_by_sums(&mut rng));
        let by_opening = repeat(plan.effort, || dealing.verify_by_opening());
        Ok((generate, vec![each, by_opening, by_sums, batch]))
    })?;
    let stages = [
        comparison(
            "kzg-verify",
            "Verify all shares, KZG (insecure test setup)",
            PublishedStage::KzgVerify,
            vec![SAME, AT_ONCE, BY_PROOFS, BY_THE_CRATE],
            measured.verified,
        ),
        comparison(
            "kzg-generate",
            "Make shares, KZG (insecure test setup)",
            PublishedStage::KzgGenerate,
            vec![SAME],
            measured.generated,
        ),
    ];
    Ok(Experiment {
        slug: "kzg".into(),
        title: "Shares with KZG's commitments: an insecure test setup".into(),
        about: vec![
            "Do not use it: the setup is drawn in this process. A dealer who knows τ opens the commitment to anything, so that no \
             share proves anything about the others. It is measured because it was published beside Feldman's."
                .into(),
            "A commitment is one point whatever the threshold, and each share comes with a proof of one point. For that it needs \
             a setup, and pairings to verify. Quiver's quorums use Feldman's commitments."
                .into(),
        ],
        published: vec!["Wall time of making a setup, n shares and their proofs; and of verifying all n, one by one.".into()],
        method: method(plan),
        differences: vec![
            "Making, verifying one by one and the batch check are the crate's, ark-poly-commit 0.6, on arkworks' arithmetic, not on the assembly that the rest of Quiver runs on. The \
             setup has exactly as many powers as the polynomial has coefficients, and making it counts, as in the published code."
                .into(),
            "All at once: the dealer opens its commitment at one more point, hashed from it and from all shares, with one proof of 48 \
             bytes; it is checked against the polynomial through the shares, over quiver-pairing. That leaves two pairings for any \
             number of shares, and wrong ones pass with probability n / r, 2^-247 for 128. Making shares makes that proof too."
                .into(),
            "All at once by each share's proof, as they were published: random weights of 112 bits, with which wrong shares pass once in \
             2^112 times; two multi-scalar multiplications and two pairings over quiver-pairing. The crate's batch check makes three \
             multiplications for every share."
                .into(),
        ],
        plots: vec![plot("kzg", "KZG's commitments (insecure test setup)", published, &stages)],
        tables: stages.iter().map(|stage| stage.table(published)).collect(),
    })
}

fn comparison(
    slug: &'static str,
    caption: &'static str,
    stage: PublishedStage,
    ways: Vec<MeasuredVariant>,
    rows: Vec<(u32, Vec<Timing>)>,
) -> StageComparison {
    StageComparison { slug, caption, stage, parameter: "validators", ways, rows, notes: Vec::new() }
}

fn narrow(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
