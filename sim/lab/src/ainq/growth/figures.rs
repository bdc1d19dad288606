//! Tables and plots of the growth.

use quiver_report::{Axis, CellValue, Column, Experiment, Panel, Plot, Series, Table, Unit};

use super::{Cost, GroupCosts, GrowthEvent};
use crate::ainq::group::Strategy;
use crate::ainq::plan::AinqPlan;
use crate::ainq::strategies::{PerStrategy, STRATEGIES, ink, name};

/// A quantity of a cost.
struct GrowthQuantity {
    slug: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: Unit,
    of: fn(Cost) -> f64,
}

const QUANTITIES: [GrowthQuantity; 3] = [
    GrowthQuantity {
        slug: "growth-cpu",
        title: "leader CPU",
        caption: "CPU time at the leader until the broadcast is ready.",
        unit: Unit::Seconds,
        of: |cost| cost.cpu.median,
    },
    GrowthQuantity {
        slug: "growth-bytes",
        title: "bytes sent",
        caption: "Bytes the leader sends: the signed header and all wraps, each once.",
        unit: Unit::Bytes,
        of: |cost| cost.bytes,
    },
    GrowthQuantity {
        slug: "growth-airtime",
        title: "airtime",
        caption: "How long an IEEE 802.15.4 channel carries these bytes as one broadcast.",
        unit: Unit::Seconds,
        of: |cost| cost.airtime,
    },
];

pub(super) fn experiment(plan: &AinqPlan, sizes: &[GroupCosts]) -> Experiment {
    Experiment {
        slug: "growth".into(),
        title: "Growth: both strategies, up to the horizon".into(),
        about: vec![
            "Beyond 2,000 drones nothing was published. The flat strategy is the paper's: one wrap for every drone, so everything \
             grows with the group. The tree strategy keeps a key in every node of a binary tree over the drones (logical key \
             hierarchy, RFC 2627): one that leaves costs the nodes on its path, twice the logarithm of the group, and an \
             expiry costs two wraps whatever the size."
                .into(),
            "Opening a term costs a multiplication and a wrap for every drone under either strategy: there is no shorter way \
             to agree on a secret with everybody. It happens when a leader starts, and when another takes over."
                .into(),
            "On a radio of 250 kbit/s the difference is the one between a swarm that can re-key in flight and one that cannot."
                .into(),
        ],
        published: Vec::new(),
        method: vec![
            format!(
                "Medians in CPU time of one thread, up to {} samples after one to warm up; the tables say how many. Groups are \
                 real: every drone has a key that the KGC's function issued, and after the measurements one more drone joins \
                 and follows through expiry and leave, and must hold the leader's key.",
                plan.effort.most
            ),
            "When a term opens, the drones' Y are known, as they are to a leader that led them before. Joining counts keying \
             alone. Bytes are canonical encodings, without the envelope of a transport."
                .into(),
            "Airtime: frames of at most 127 bytes with their headers, 250 kbit/s, each sent once, nothing lost; channel access \
             and spaces between frames come on top."
                .into(),
        ],
        differences: Vec::new(),
        plots: QUANTITIES.iter().map(|quantity| plot(quantity, sizes)).collect(),
        tables: GrowthEvent::ALL.into_iter().map(|event| table(event, sizes)).chain([background(sizes)]).collect(),
    }
}

fn plot(quantity: &GrowthQuantity, sizes: &[GroupCosts]) -> Plot {
    let series = |event: GrowthEvent, strategy: Strategy| {
        let figure = |size: &GroupCosts| {
            let cost = size.costs.of(strategy)?.of(event);
            Some((f64::from(size.drones), (quantity.of)(cost)))
        };
        Series::new(name(strategy), ink(strategy), sizes.iter().filter_map(figure).collect())
    };
    let panel = |event: GrowthEvent| {
        let mut all: Vec<Series> = STRATEGIES.into_iter().map(|strategy| series(event, strategy)).collect();
        if event == GrowthEvent::Open {
            all.push(with_paths(quantity, sizes));
        }
        Panel { title: event.title().into(), series: all }
    };
    Plot {
        slug: quantity.slug.into(),
        caption: quantity.caption.into(),
        x: Axis::log("drones", Unit::Count),
        y: Axis::log(quantity.title, quantity.unit),
        panels: GrowthEvent::ALL.map(panel).into(),
    }
}

/// The tree's opening together with the path messages that follow it.
fn with_paths(quantity: &GrowthQuantity, sizes: &[GroupCosts]) -> Series {
    let figure = |size: &GroupCosts| {
        let costs = size.costs.of(Strategy::Tree)?;
        let all = (quantity.of)(costs.of(GrowthEvent::Open)) + (quantity.of)(costs.paths?);
        Some((f64::from(size.drones), all))
    };
    let points = sizes.iter().filter_map(figure).collect();
    Series::new("tree, with the paths that follow", ink(Strategy::Tree), points).dashed()
}

fn table(event: GrowthEvent, sizes: &[GroupCosts]) -> Table {
    let ratio = |key: &str| Column::new(key, "flat / tree", Unit::Times).strong();
    let column = |key: &str, title: &str, unit: Unit| Column::new(key, title, unit);
    let columns = vec![
        column("drones", "drones", Unit::Count),
        column("flat_cpu_seconds", "flat: CPU", Unit::Seconds),
        column("tree_cpu_seconds", "tree: CPU", Unit::Seconds),
        ratio("flat_over_tree_cpu"),
        column("flat_bytes", "flat: sent", Unit::Bytes),
        column("tree_bytes", "tree: sent", Unit::Bytes),
        ratio("flat_over_tree_bytes"),
        column("flat_airtime_seconds", "flat: airtime", Unit::Seconds),
        column("tree_airtime_seconds", "tree: airtime", Unit::Seconds),
        column("samples", "samples", Unit::Count),
    ];
    let caption = format!("When {}", event.title());
    let mut table = Table::new(&format!("growth-{}", event.key()), &caption, columns);
    for size in sizes {
        table.push(row(size, &size.costs.map(|costs| costs.of(event))));
    }
    table
}

fn row(size: &GroupCosts, costs: &PerStrategy<Cost>) -> Vec<CellValue> {
    let (flat, tree) = (Strategy::Flat, Strategy::Tree);
    let cpu = costs.map(|cost| cost.cpu.median);
    let bytes = costs.map(|cost| cost.bytes);
    let airtime = costs.map(|cost| cost.airtime);
    let samples = STRATEGIES.into_iter().filter_map(|strategy| Some(costs.of(strategy)?.cpu.samples)).min();
    vec![
        size.drones.into(),
        cpu.of(flat).into(),
        cpu.of(tree).into(),
        cpu.flat_over_tree(),
        bytes.of(flat).into(),
        bytes.of(tree).into(),
        bytes.flat_over_tree(),
        airtime.of(flat).into(),
        airtime.of(tree).into(),
        samples.into(),
    ]
}

/// Work after an epoch, which does not delay the members' key.
fn background(sizes: &[GroupCosts]) -> Table {
    let columns = vec![
        Column::new("drones", "drones", Unit::Count),
        Column::new("flat_settle_seconds", "flat, after each re-key: CPU", Unit::Seconds),
        Column::new("tree_paths_cpu_seconds", "tree, after an opening: CPU", Unit::Seconds),
        Column::new("tree_paths_bytes", "sent", Unit::Bytes),
        Column::new("tree_paths_airtime_seconds", "airtime", Unit::Seconds),
    ];
    let mut table = Table::new("growth-background", "What follows when the key is out", columns);
    for size in sizes {
        let afterwards = size.costs.map(|costs| costs.afterwards.median);
        let paths = size.costs.of(Strategy::Tree).and_then(|costs| costs.paths);
        table.push(vec![
            size.drones.into(),
            afterwards.of(Strategy::Flat).into(),
            paths.map(|cost| cost.cpu.median).into(),
            paths.map(|cost| cost.bytes).into(),
            paths.map(|cost| cost.airtime).into(),
        ]);
    }
    table.notes.push(
        "Under flat every drone's hash chain is stepped. Under tree every drone gets the keys above its leaf in a message of \
         its own, sent with acknowledgements when the channel is free; a drone that lacks its path when it is needed asks for \
         it. Beyond 20,000 drones, 20,000 path messages are made and counted for all."
            .into(),
    );
    table
}
