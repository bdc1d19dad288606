//! Measures elements of Fr, G1, G2 and GT, and the pairing.

use quiver_pairing::{FixedBase, G1, G2, Group, Gt, Scalar, pairing, scalar_random};
use quiver_report::{CellValue, Column, Experiment, Observer, Table, Unit};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::operation::PublishedPlatform;
use super::plan::AbePlan;
use super::published::PublishedAbe;
use crate::measure::{Effort, Timing, repeat};

/// The domain of attributes' names in this experiment.
const DOMAIN: &str = "QUIVER-EXPERIMENT-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

/// An operation, measured here.
struct MeasuredOperation {
    /// Name in the publication.
    name: &'static str,
    ours: Timing,
    /// Time with a table of the base, made beforehand.
    tabled: Option<Timing>,
}

pub(super) fn measure(plan: &AbePlan, published: &PublishedAbe, observer: &mut dyn Observer) -> Experiment {
    observer.begin("group operations", 4);
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let mut measured = sampling(plan.effort, &mut rng);
    observer.advance(1);
    measured.extend(additions(plan.effort, &mut rng));
    observer.advance(1);
    measured.extend(powers(plan.effort, &mut rng));
    observer.advance(1);
    let (p, q) = (G1::generator() * scalar_random(&mut rng), G2::generator() * scalar_random(&mut rng));
    let ours = repeat(plan.effort, || pairing(&p, &q));
    measured.push(MeasuredOperation { name: "Pairing", ours, tabled: None });
    let hashed = repeat(plan.effort, || G1::hash(DOMAIN, &[b"attribute-1"]));
    observer.advance(1);
    Experiment {
        slug: "groups".into(),
        title: "Groups and the pairing".into(),
        about: vec![
            "What everything else is made of: drawing a random element, the group operation, raising to a power (here: \
             multiplying by a scalar), and the pairing."
                .into(),
        ],
        published: vec!["Times on an nRF52840 and on a laptop, over a BN curve.".into()],
        method: vec![
            format!(
                "Medians in CPU time of one thread; each sample repeats the operation for at least 0.2 ms, and there are {} to \
                 {} samples. Elements are drawn as the published times show it was done: the generator times a random \
                 scalar, in GT the pairing of two random points.",
                plan.effort.least, plan.effort.most
            ),
            "With a table: a fixed-base table, made beforehand, as setup and encryption use it.".into(),
        ],
        differences: vec![
            "The published curve has a field of 254 bits, BLS12-381 one of 381: each multiplication in the field costs about twice \
             as much, and the group is about twenty bits stronger."
                .into(),
        ],
        plots: Vec::new(),
        tables: vec![table(published, &measured, hashed)],
    }
}

fn sampling(effort: Effort, rng: &mut ChaCha20Rng) -> Vec<MeasuredOperation> {
    let (g1, g2) = (FixedBase::new(&G1::generator()), FixedBase::new(&G2::generator()));
    let gt = FixedBase::new(&pairing(&G1::generator(), &G2::generator()));
    let measured = |name, ours, tabled| MeasuredOperation { name, ours, tabled };
    vec![
        measured("Sample from Fr", repeat(effort, || scalar_random(rng)), None),
        measured(
            "Sample from G1",
            repeat(effort, || G1::generator() * scalar_random(rng)),
            Some(repeat(effort, || g1.multiply(&scalar_random(rng)))),
        ),
        measured(
            "Sample from G2",
            repeat(effort, || G2::generator() * scalar_random(rng)),
            Some(repeat(effort, || g2.multiply(&scalar_random(rng)))),
        ),
        measured(
            "Sample from GT",
            repeat(effort, || {
                pairing(&(G1::generator() * scalar_random(rng)), &(G2::generator() * scalar_random(rng)))
            }),
            Some(repeat(effort, || gt.multiply(&scalar_random(rng)))),
        ),
    ]
}

/// Random elements of the three groups.
fn elements(rng: &mut ChaCha20Rng) -> (G1, G2, Gt) {
    let (p, q) = (G1::generator() * scalar_random(rng), G2::generator() * scalar_random(rng));
    (p, q, pairing(&p, &q))
}

fn additions(effort: Effort, rng: &mut ChaCha20Rng) -> Vec<MeasuredOperation> {
    let ((p, q, e), (r, s, f)) = (elements(rng), elements(rng));
    let measured = |name, ours| MeasuredOperation { name, ours, tabled: None };
    vec![
        measured("Group operation G1", added(effort, p, r)),
        measured("Group operation G2", added(effort, q, s)),
        measured("Group operation GT", added(effort, e, f)),
    ]
}

fn added<G: Group>(effort: Effort, mut sum: G, element: G) -> Timing {
    repeat(effort, || {
        sum += element;
        sum
    })
}

fn powers(effort: Effort, rng: &mut ChaCha20Rng) -> Vec<MeasuredOperation> {
    let (p, q, e) = elements(rng);
    let scalar = scalar_random(rng);
    vec![
        power(effort, "Exponentiation in G1", &p, &scalar),
        power(effort, "Exponentiation in G2", &q, &scalar),
        power(effort, "Exponentiation in GT", &e, &scalar),
    ]
}

fn power<G: Group>(effort: Effort, name: &'static str, base: &G, scalar: &Scalar) -> MeasuredOperation {
    let table = FixedBase::new(base);
    MeasuredOperation {
        name,
        ours: repeat(effort, || *base * scalar),
        tabled: Some(repeat(effort, || table.multiply(scalar))),
    }
}

fn table(published: &PublishedAbe, measured: &[MeasuredOperation], hashed: Timing) -> Table {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("soc_seconds", "published, SoC", Unit::Seconds),
        Column::new("laptop_seconds", "published, laptop", Unit::Seconds),
        Column::new("ours_seconds", "here", Unit::Seconds).strong(),
        Column::new("laptop_over_ours", "laptop / here", Unit::Times).strong(),
        Column::new("soc_over_ours", "SoC / here", Unit::Times),
        Column::new("tabled_seconds", "here, with a table", Unit::Seconds),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new("groups", "Elements of the groups", columns);
    for MeasuredOperation { name, ours, tabled } in measured {
        let (soc, laptop) = (
            published.element(PublishedPlatform::Soc, name),
            published.element(PublishedPlatform::Laptop, name),
        );
        table.push(vec![
            (*name).into(),
            soc.into(),
            laptop.into(),
            (*ours).into(),
            CellValue::ratio(laptop, Some(ours.median)),
            CellValue::ratio(soc, Some(ours.median)),
            (*tabled).into(),
            ours.samples.into(),
        ]);
    }
    let mut own = vec![CellValue::Missing; 8];
    own[0] = "Hash to G1 (RFC 9380)".into();
    own[3] = hashed.into();
    own[7] = hashed.samples.into();
    table.push(own);
    table.notes.push(
        "Hashing to G1, of which nothing was published, is what FABEO's large universe costs for each attribute that is not in \
         a table."
            .into(),
    );
    table
}
