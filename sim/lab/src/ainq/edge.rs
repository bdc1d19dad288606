//! Measures what an edge drone computes.

use quiver_ainq::paper;
use quiver_ainq::{Element, Ristretto255, SecretScalar, SecretValue, Suite};
use quiver_report::{CellValue, Column, Experiment, Observer, Table, Unit};

use super::group::{Follower, Strategy, context, join};
use super::plan::AinqPlan;
use super::published::PublishedAinq;
use super::reference::Reference;
use super::strategies::STRATEGIES;
use super::swarm::LabSwarm;
use crate::measure::{Effort, Timing, repeat};
use crate::{LabError, Result};

type S = Ristretto255;

/// The groups that the drones of the second table are in.
const MEMBERS: u32 = 100;

pub(super) fn measure(
    plan: &AinqPlan,
    published: &PublishedAinq,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("edge drone", 3 + STRATEGIES.len());
    let ours = reference(plan, observer)?;
    Ok(Experiment {
        slug: "edge".into(),
        title: "What an edge drone computes".into(),
        about: about(),
        published: vec![
            "Seconds for one elliptic curve multiplication, for GenSecretValue and for KeyRetrieval, each of which takes one.".into(),
        ],
        method: vec![
            format!(
                "Medians in CPU time of one thread; each sample repeats the operation for at least 0.2 ms, and there are {} to {} samples.",
                plan.effort.least, plan.effort.most
            ),
        ],
        differences: vec![
            "The published figures come from the authors' machine and curve, ours from the machine named above and ristretto255. \
             Compare the columns in multiplications first: they take the machine out."
                .into(),
        ],
        plots: Vec::new(),
        tables: vec![published_operations(published, &ours), quivers_operations(plan, &ours, observer)?],
    })
}

fn about() -> Vec<String> {
    vec![
        "A drone multiplies a point of an elliptic curve to choose its secret value, and once more to retrieve a group key. \
         Everything else it does is hashing, so each operation should cost about one multiplication. In the publication \
         it does. Here the three differ, because each kind of multiplication is computed in its own way."
            .into(),
        "Quiver's drone does more than the paper's: it checks who made the key before it believes it. That costs one \
         signature check. From then on following the group costs no multiplication at all beyond this check, because leader \
         and drone share a hash chain."
            .into(),
    ]
}

/// The three published operations, measured here.
struct Operations {
    multiplication: Timing,
    secret_value: Timing,
    key_retrieval: Timing,
}

fn reference(plan: &AinqPlan, observer: &mut dyn Observer) -> Result<Operations> {
    let mut world = Reference::new(plan.seed)?;
    let multiplication = multiplication(plan.effort);
    observer.advance(1);
    let secret_value = repeat(plan.effort, || paper::gen_secret_value::<S>(&mut world.rng));
    observer.advance(1);
    let own = world.drones(1)?.pop().ok_or(LabError::WrongKey("no drone"))?;
    let (_, broadcast) = world.gen_group_key(vec![own.member.clone()])?;
    let (parameters, leader) = (&world.parameters, &world.leader);
    let key_retrieval =
        repeat(plan.effort, || paper::key_retrieval(parameters, &own, leader, &broadcast, 0).is_ok());
    observer.advance(1);
    Ok(Operations { multiplication, secret_value, key_retrieval })
}

/// A multiplication of a variable point by a secret scalar, constant-time, as everything secret is.
pub(super) fn multiplication(effort: Effort) -> Timing {
    let mut rng = LabSwarm::<S>::randomness(1);
    let scalar = SecretScalar::<S>::generate(&mut rng);
    let point: Element<S> = SecretScalar::generate(&mut rng).public();
    repeat(effort, || S::mul(scalar.expose(), point.point()))
}

fn published_operations(published: &PublishedAinq, ours: &Operations) -> Table {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("published_seconds", "published", Unit::Seconds),
        Column::new("ours_seconds", "same algorithm here", Unit::Seconds),
        Column::new("published_over_ours", "published / ours", Unit::Times).strong(),
        Column::new("published_multiplications", "published, in multiplications", Unit::Times),
        Column::new("ours_multiplications", "ours, in multiplications", Unit::Times),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new("edge", "The published operations of an edge drone", columns);
    let rows = [
        ("ec_multiplication", "EC multiplication", ours.multiplication),
        ("gen_secret_value", "GenSecretValue", ours.secret_value),
        ("key_retrieval", "KeyRetrieval", ours.key_retrieval),
    ];
    let unit = published.edge("ec_multiplication");
    for (key, name, timing) in rows {
        let theirs = published.edge(key);
        let named = published
            .edge_multiplications(key)
            .map_or_else(String::new, |count| format!(" ({count} multiplication)"));
        table.push(vec![
            CellValue::Text(format!("{name}{named}")),
            theirs.into(),
            timing.into(),
            CellValue::ratio(theirs, Some(timing.median)),
            CellValue::ratio(theirs, unit),
            CellValue::ratio(Some(timing.median), Some(ours.multiplication.median)),
            timing.samples.into(),
        ]);
    }
    table.notes.push(
        "The first row is a multiplication of any point by a secret. GenSecretValue multiplies the generator, which is always \
         the same point: a table of its multiples makes that cheaper. KeyRetrieval climbs a Montgomery ladder over \
         x-coordinates, which needs no table and lets a leader compute many in step, but alone takes longer than the first row."
            .into(),
    );
    table
}

fn quivers_operations(plan: &AinqPlan, ours: &Operations, observer: &mut dyn Observer) -> Result<Table> {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("ours_seconds", "here", Unit::Seconds).strong(),
        Column::new("ours_multiplications", "in multiplications", Unit::Times),
        Column::new("samples", "samples", Unit::Count),
    ];
    let caption = format!("What a drone of Quiver does, in a group of {MEMBERS}");
    let mut table = Table::new("edge-quiver", &caption, columns);
    for (name, timing) in quivers_timings(plan, observer)? {
        let multiplications = CellValue::ratio(Some(timing.median), Some(ours.multiplication.median));
        table.push(vec![name.into(), timing.into(), multiplications, timing.samples.into()]);
    }
    table.notes.push(
        "The signature check is the same for all of them: two multiplications in variable time, shared."
            .into(),
    );
    Ok(table)
}

fn quivers_timings(plan: &AinqPlan, observer: &mut dyn Observer) -> Result<Vec<(&'static str, Timing)>> {
    let mut swarm = LabSwarm::<S>::new(plan.seed)?;
    let secret_value = repeat(plan.effort, || SecretValue::<S>::generate(&mut swarm.rng).public());
    let mut timings = vec![("choose a secret value", secret_value)];
    for strategy in STRATEGIES {
        let [check, retrieve, follow] = follower_timings(plan, &mut swarm, strategy)?;
        if strategy == Strategy::Flat {
            timings.push(("check the leader's signature over a header", check));
        }
        timings.push((retrieving(strategy), retrieve));
        timings.push((following(strategy), follow));
        observer.advance(1);
    }
    Ok(timings)
}

const fn retrieving(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Flat => "retrieve the key on joining, flat",
        Strategy::Tree => "retrieve key and path on joining, tree",
    }
}

const fn following(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Flat => "follow a re-key, flat",
        Strategy::Tree => "follow a re-key after a leave, tree",
    }
}

/// Checking a header; retrieving a key on joining; following a leave. The last two with the header checked
/// before.
fn follower_timings(plan: &AinqPlan, swarm: &mut LabSwarm<S>, strategy: Strategy) -> Result<[Timing; 3]> {
    let members = swarm.members(MEMBERS, &mut ())?;
    let (mut group, _) = swarm.open(strategy, members)?;
    let (mut follower, welcome) = Follower::enter(swarm, &mut group)?;
    let (about, slot) = (context(swarm), follower.slot());
    let check = repeat(plan.effort, || welcome.verified(swarm).is_ok());
    let (header, part) = (welcome.verified(swarm)?, welcome.part(slot)?);
    let retrieve = repeat(plan.effort, || join(&about, follower.drone(), &header, &part).is_ok());
    let leave = group.dismiss(swarm, vec![slot / 2])?;
    let (header, part) = (leave.verified(swarm)?, leave.part(slot)?);
    let follow = repeat(plan.effort, || follower.advanced(&about, &header, &part).is_ok());
    // The timed result is also right.
    follower.follow(swarm, &group, &leave)?;
    Ok([check, retrieve, follow])
}
