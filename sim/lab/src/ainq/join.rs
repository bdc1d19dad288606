//! Measures the leader's computation of Re-Key when drones join.

use quiver_ainq::{Batch, Join, Ristretto255, Slot};
use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Observer, Panel, Plot, Series, Table, Unit};

use super::group::{MeasuredGroup, Strategy};
use super::join_request::{SignedJoin, checked, unchecked};
use super::plan::AinqPlan;
use super::published::PublishedAinq;
use super::reference::Reference;
use super::strategies::{PerStrategy, STRATEGIES, ink, name};
use super::swarm::LabSwarm;
use crate::Result;
use crate::measure::{Timing, repeat_on};

type S = Ristretto255;

/// Cell of a table: numbers of drones in the group and of those that join.
struct Cell {
    existing: u32,
    new: u32,
    paper: Timing,
    quiver: PerStrategy<Timing>,
    /// Flat, with the newcomers' requests checked.
    checked: Timing,
}

pub(super) fn measure(
    plan: &AinqPlan,
    published: &PublishedAinq,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("Re-Key on join", plan.join.len() * plan.join.len());
    let mut cells = Vec::new();
    for &existing in &plan.join {
        for &new in &plan.join {
            cells.push(cell(plan, existing, new)?);
            observer.advance(1);
        }
    }
    Ok(Experiment {
        slug: "join".into(),
        title: "Drones that join a group".into(),
        about: about(),
        published: vec![
            "Seconds at the leader for Re-Key with 1, 100, 500 and 1,000 newcomers to groups of 1, 100, 500 and 1,000."
                .into(),
        ],
        method: vec![
            format!(
                "Medians in CPU time of one thread, {} to {} samples after one to warm up. After each sample the newcomers \
                 are dismissed again (Quiver) or the group is formed anew (published algorithm), uncounted.",
                plan.effort.least, plan.effort.most
            ),
            "Keying alone counts, per newcomer, Y and T, and then the new key's wraps for everybody. Requests checked adds \
             what a leader of Quiver does before it lets anybody in: two signatures per newcomer, in one batch."
                .into(),
        ],
        differences: vec![
            "The paper's leader takes whoever it is told of; a leader of Quiver checks that the drone itself has asked. \
             Everything else as above."
                .into(),
        ],
        plots: vec![plot(plan, published, &cells)],
        tables: vec![table(published, &cells)],
    })
}

fn about() -> Vec<String> {
    vec![
        "When drones join, the leader computes Y and T for the newcomers only and wraps a new key for everybody. The time \
         grows with the newcomers: in the publication 29 ms for each. The group itself shows only where few join, as its wraps \
         are hashing; along the tree, one newcomer costs the same in every group."
            .into(),
    ]
}

fn cell(plan: &AinqPlan, existing: u32, new: u32) -> Result<Cell> {
    let joins = |strategy, check| quiver(plan, existing, new, strategy, check);
    Ok(Cell {
        existing,
        new,
        paper: as_published(plan, existing, new)?,
        quiver: PerStrategy::try_of(|strategy| joins(strategy, Requests::Taken))?,
        checked: joins(Strategy::Flat, Requests::Checked)?,
    })
}

fn as_published(plan: &AinqPlan, existing: u32, new: u32) -> Result<Timing> {
    let mut world = Reference::new(plan.seed)?;
    let known = world.known(existing)?;
    let members = world.members(&known)?;
    let newcomers = world.known(new)?;
    repeat_on(
        plan.effort,
        &mut world,
        |world| world.gen_group_key(members.clone()),
        |world, (mut group, _)| {
            let newcomers = world.members(&newcomers)?;
            world.rekey_on_join(&mut group, newcomers)
        },
    )
}

/// The leader's treatment of requests to join.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Requests {
    Taken,
    Checked,
}

/// A group with newcomers that come and go.
struct JoinMeasurement {
    swarm: LabSwarm<S>,
    group: MeasuredGroup<S>,
    inside: Vec<Slot>,
}

impl JoinMeasurement {
    /// Removes all newcomers.
    fn clear(&mut self) -> Result<()> {
        let leaving = std::mem::take(&mut self.inside);
        if !leaving.is_empty() {
            self.group.dismiss(&mut self.swarm, leaving)?;
        }
        self.group.leadership.settle();
        Ok(())
    }
}

fn quiver(
    plan: &AinqPlan,
    existing: u32,
    new: u32,
    strategy: Strategy,
    requests: Requests,
) -> Result<Timing> {
    let mut swarm = LabSwarm::<S>::new(plan.seed)?;
    let members = swarm.members(existing, &mut ())?;
    let (group, _) = swarm.open(strategy, members)?;
    let newcomers = SignedJoin::many(&mut swarm, new)?;
    let mut door = JoinMeasurement { swarm, group, inside: Vec::new() };
    repeat_on(plan.effort, &mut door, JoinMeasurement::clear, |door, ()| {
        let joins: Vec<Join<S>> = match requests {
            Requests::Taken => unchecked(&door.swarm, &newcomers)?,
            Requests::Checked => checked(&mut door.swarm, &newcomers)?,
        };
        let sent = door.group.rekey(&mut door.swarm, Batch { joins, ..Batch::default() })?;
        door.inside.clone_from(&sent.output.assigned);
        Ok(sent)
    })
}

fn table(published: &PublishedAinq, cells: &[Cell]) -> Table {
    let seconds = |key: &str, title: &str| Column::new(key, title, Unit::Seconds);
    let columns = vec![
        Column::new("existing", "in the group", Unit::Count),
        Column::new("new", "join", Unit::Count),
        seconds("published_seconds", "published"),
        seconds("paper_seconds", "same algorithm here"),
        Column::new("published_over_paper", "published / same", Unit::Times),
        seconds("flat_seconds", "flat"),
        seconds("tree_seconds", "tree"),
        seconds("flat_checked_seconds", "flat, requests checked"),
        Column::new("published_over_flat", "published / flat", Unit::Times).strong(),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new("rekey-join", "CPU time at the leader when drones join", columns);
    for cell in cells {
        let theirs = published.join(cell.existing, cell.new);
        let quiver = cell.quiver.seconds();
        table.push(vec![
            cell.existing.into(),
            cell.new.into(),
            theirs.into(),
            cell.paper.into(),
            CellValue::ratio(theirs, Some(cell.paper.median)),
            quiver.of(Strategy::Flat).into(),
            quiver.of(Strategy::Tree).into(),
            cell.checked.into(),
            CellValue::ratio(theirs, quiver.of(Strategy::Flat)),
            cell.paper.samples.into(),
        ]);
    }
    table
}

fn plot(plan: &AinqPlan, published: &PublishedAinq, cells: &[Cell]) -> Plot {
    let panel = |&existing: &u32| {
        let theirs =
            plan.join.iter().filter_map(|&new| Some((f64::from(new), published.join(existing, new)?)));
        let cells = || cells.iter().filter(move |cell| cell.existing == existing);
        let paper = cells().map(|cell| (f64::from(cell.new), cell.paper.median)).collect();
        let mut series = vec![
            Series::new("published", Ink::Published, theirs.collect()).dashed(),
            Series::new("same algorithm here", Ink::Paper, paper),
        ];
        for strategy in STRATEGIES {
            let figure = |cell: &Cell| Some((f64::from(cell.new), cell.quiver.seconds().of(strategy)?));
            series.push(Series::new(name(strategy), ink(strategy), cells().filter_map(figure).collect()));
        }
        let word = if existing == 1 { "drone" } else { "drones" };
        Panel { title: format!("to a group of {} {word}", Unit::Count.show(f64::from(existing))), series }
    };
    Plot {
        slug: "rekey-join".into(),
        caption: "CPU time at the leader by number of newcomers, by size of the group they join. Both axes are logarithmic."
            .into(),
        x: Axis::log("newcomers", Unit::Count),
        y: Axis::log("CPU time", Unit::Seconds),
        panels: plan.join.iter().map(panel).collect(),
    }
}
