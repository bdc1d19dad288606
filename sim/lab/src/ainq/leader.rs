//! Measures the leader's computation of GenGroupKey, and of Re-Key when the key expires.

mod figures;

use quiver_ainq::{Batch, Ristretto255};
use quiver_report::{Experiment, Observer};

use self::figures::{multiplications_plot, multiplications_table, time_plot, time_table};
use super::edge::multiplication;
use super::group::Strategy;
use super::plan::AinqPlan;
use super::published::PublishedAinq;
use super::reference::{MemberTriple, Reference};
use super::strategies::PerStrategy;
use super::swarm::{LabSwarm, NOW};
use crate::Result;
use crate::measure::{Timing, repeat_on};

type S = Ristretto255;

/// The operation, with its name in the published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeaderOperation {
    GenGroupKey,
    ReKey,
}

impl LeaderOperation {
    const ALL: [Self; 2] = [Self::GenGroupKey, Self::ReKey];

    const fn key(self) -> &'static str {
        match self {
            Self::GenGroupKey => "gen_group_key",
            Self::ReKey => "re_key_expiry",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::GenGroupKey => "GenGroupKey",
            Self::ReKey => "Re-Key on expiry",
        }
    }
}

/// An operation with one number of drones.
struct OperationComparison {
    operation: LeaderOperation,
    drones: u32,
    /// The algorithm as published.
    paper: Timing,
    quiver: PerStrategy<Timing>,
}

pub(super) fn measure(
    plan: &AinqPlan,
    published: &PublishedAinq,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("GenGroupKey, Re-Key", plan.leader.len());
    let mut points = Vec::new();
    for &drones in &plan.leader {
        points.extend(points_of(plan, drones)?);
        observer.advance(1);
    }
    points.sort_by_key(|point| (point.operation, point.drones));
    let unit = multiplication(plan.effort).median;
    Ok(Experiment {
        slug: "leader".into(),
        title: "Forming a group, and the key's expiry".into(),
        about: about(),
        published: vec![
            "Seconds at the leader for GenGroupKey and for Re-Key on expiry, for 1 and for 2,000 drones. The broken line \
             between the two points is ours, to guide the eye."
                .into(),
        ],
        method: method(plan),
        differences: differences(),
        plots: vec![time_plot(published, &points), multiplications_plot(published, &points, unit)],
        tables: vec![time_table(published, &points), multiplications_table(published, &points, unit)],
    })
}

/// Measures both operations with this number of drones.
fn points_of(plan: &AinqPlan, drones: u32) -> Result<[OperationComparison; 2]> {
    let paper = as_published(plan, drones)?;
    let quiver = PerStrategy::try_of(|strategy| as_quiver(plan, drones, strategy))?;
    let point = |operation, paper, quiver| OperationComparison { operation, drones, paper, quiver };
    Ok([
        point(LeaderOperation::GenGroupKey, paper.0, quiver.map(|both| both.0)),
        point(LeaderOperation::ReKey, paper.1, quiver.map(|both| both.1)),
    ])
}

/// GenGroupKey and Re-Key of the paper.
fn as_published(plan: &AinqPlan, drones: u32) -> Result<(Timing, Timing)> {
    let mut world = Reference::new(plan.seed)?;
    let known: Vec<MemberTriple> = world.known(drones)?;
    let form = |world: &mut Reference, ()| {
        let members = world.members(&known)?;
        world.gen_group_key(members)
    };
    let forming = repeat_on(plan.effort, &mut world, |_| Ok(()), form)?;
    let (mut group, _) = form(&mut world, ())?;
    let mut t_g = NOW;
    let expire = |world: &mut Reference, ()| -> Result<_> {
        t_g += 1;
        Ok(group.rekey_on_expiry(t_g, &mut world.rng))
    };
    Ok((forming, repeat_on(plan.effort, &mut world, |_| Ok(()), expire)?))
}

/// A term that opens for members whose Y is not computed yet, and a re-key.
fn as_quiver(plan: &AinqPlan, drones: u32, strategy: Strategy) -> Result<(Timing, Timing)> {
    let mut swarm = LabSwarm::<S>::new(plan.seed)?;
    let members = swarm.members(drones, &mut ())?;
    let forming = repeat_on(
        plan.effort,
        &mut swarm,
        |_| Ok(members.clone()),
        |swarm, members| swarm.open(strategy, members),
    )?;
    let (group, _) = swarm.open(strategy, members)?;
    let expiry = repeat_on(
        plan.effort,
        &mut (swarm, group),
        |(_, group)| {
            group.leadership.settle();
            Ok(())
        },
        |(swarm, group), ()| group.rekey(swarm, Batch::default()),
    )?;
    Ok((forming, expiry))
}

fn about() -> Vec<String> {
    vec![
        "GenGroupKey forms a group: for every drone the leader computes the drone's implicit public key Y and a pairwise \
         secret T, one multiplication each, and wraps the group key under it. Re-Key on expiry wraps a new key under the \
         secrets that are there, which is hashing only. The publication shows both for one drone and for 2,000."
            .into(),
        "The first column of ours is the algorithm as published. flat is Quiver's own keying, one wrap per drone as in \
         the paper, with hash chains that are stepped at every use; tree wraps along a key tree."
            .into(),
    ]
}

fn method(plan: &AinqPlan) -> Vec<String> {
    vec![format!(
        "Medians in CPU time of one thread, {} to {} samples after one to warm up. GenGroupKey counts everything from the \
         drones' identities and public values on; for Quiver that is the opening of a term with no Y computed before. \
         Re-Key counts until the broadcast is ready. The secrets T of a batch are computed {} here.",
        plan.effort.least,
        plan.effort.most,
        arithmetic()
    )]
}

/// Name of this machine's arithmetic for multiplying many points by one secret.
fn arithmetic() -> &'static str {
    match quiver_simd::x25519::backend() {
        quiver_simd::x25519::X25519Backend::Avx512Ifma => "eight at a time on AVX-512 IFMA",
        quiver_simd::x25519::X25519Backend::Avx2 => "four at a time on AVX2",
        _ => "one after the other",
    }
}

fn differences() -> Vec<String> {
    vec![
        "Another machine, another curve (ristretto255), another language. The table in multiplications divides each \
         measurement by one multiplication on its own machine, and leaves what the implementations do beyond them."
            .into(),
        "Less than one multiplication each for Y and T: Y is public, so a table of the KGC's key and variable time are allowed; \
         and all T of a batch belong to one secret, so they are computed in step where the processor has vector lanes for \
         it. Our run of the published algorithm uses the same arithmetic."
            .into(),
    ]
}
