//! Makes the report of a comparison.

use quiver_report::{
    Axis, CellValue, Column, Experiment, Highlight, Panel, Plot, Publication, Report, Series, Table, Unit,
};

use super::{Cost, Cut, MembershipEvent, MlsComparison, System};
use crate::ainq::Making;
use crate::blank_report::blank_report;

/// The size that the figures to remember are taken from, if it was measured.
const REFERENCE: u32 = 2000;

/// A quantity of a cost.
struct CostQuantity {
    slug: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: Unit,
    of: fn(&Cost) -> Option<f64>,
}

const QUANTITIES: [CostQuantity; 3] = [
    CostQuantity {
        slug: "compare-leader",
        title: "leader CPU",
        caption: "CPU time at the leader, from the decision to the next event.",
        unit: Unit::Seconds,
        of: |cost| Some(cost.leader.median),
    },
    CostQuantity {
        slug: "compare-member",
        title: "member CPU",
        caption: "CPU time at one ordinary member; where a group forms, at one newcomer.",
        unit: Unit::Seconds,
        of: |cost| cost.member.or(cost.newcomer).map(|timing| timing.median),
    },
    CostQuantity {
        slug: "compare-bytes",
        title: "bytes sent",
        caption: "Bytes the leader sends; what several receivers need alike is counted once.",
        unit: Unit::Bytes,
        of: |cost| bytes(Some(cost)),
    },
];

/// The comparison for people and programs.
#[must_use]
pub fn report(comparison: &MlsComparison, making: Making) -> Report {
    Report {
        slug: "compare".into(),
        title: "Quiver beside MLS".into(),
        lead: vec![
            "Messaging Layer Security (RFC 9420) is the standard for keying a group: any member can commit, nobody is trusted \
             with the others' keys, every change is signed and leaves a transcript. A swarm that has a leader anyway can be \
             keyed with less. This is how much less, measured on the same events, both sides for real."
                .into(),
            "The price of less: Quiver's leader knows every key its group has, and only a leader can change who is in it. \
             In MLS any member can."
                .into(),
        ],
        highlights: highlights(comparison),
        experiments: vec![experiment(comparison)],
        sources: sources(),
        ..blank_report(making)
    }
}

fn sources() -> Vec<Publication> {
    let source = |citation: &str, link: &str| Publication { citation: citation.into(), link: link.into() };
    vec![
        source(
            "Barnes, Beurdouche, Robert, Millican, Omara, Cohn-Gordon: The Messaging Layer Security (MLS) Protocol. RFC 9420, \
             2023.",
            "https://www.rfc-editor.org/rfc/rfc9420",
        ),
        source(
            "mls-rs, an implementation of MLS by Amazon Web Services, version 0.57.",
            "https://github.com/awslabs/mls-rs",
        ),
    ]
}

fn experiment(comparison: &MlsComparison) -> Experiment {
    Experiment {
        slug: "compare".into(),
        title: "The same events in both".into(),
        about: vec![
            "MLS keeps a tree of public keys, and each commit encrypts fresh secrets to the siblings of its path. Where an inner \
             node has no key, it encrypts to every member beneath instead. After one committer has added everybody, that is \
             everywhere: the row “one committer” is what a swarm with a leader gets. “Warm tree” is MLS at its best: \
             a member of each pair has committed once, all inner nodes have keys."
                .into(),
            "A warm tree cools as members leave, and warms up as others commit; each of those commits goes to everybody."
                .into(),
        ],
        published: Vec::new(),
        method: method(comparison),
        differences: differences(),
        plots: QUANTITIES.iter().map(|quantity| plot(comparison, quantity)).collect(),
        tables: MembershipEvent::ALL.into_iter().map(|event| table(comparison, event)).collect(),
    }
}

fn method(comparison: &MlsComparison) -> Vec<String> {
    let plan = &comparison.plan;
    vec![
        format!(
            "Medians in CPU time of one thread, up to {} samples after one to warm up. Each event happens to a group of N; \
             afterwards the group is what it was. The member's key is compared with the leader's each time.",
            plan.effort.most
        ),
        "MLS: mls-rs with MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519 over aws-lc, basic credentials, public messages, changes \
         by value, no path where it is not required, one Welcome for all newcomers with the tree beside it. Times include \
         parsing and serialising. When a group forms, the commit is not counted: nobody is there to receive it."
            .into(),
        "Quiver: ristretto255, canonical encodings of header, entries, wraps and path messages, encoded and decoded within the \
         times. Key packages and join requests are made beforehand; checking them counts."
            .into(),
        format!(
            "A system that has used {} s of CPU time for one size, its preparation included, is cut there.",
            plan.budget.as_secs_f64()
        ),
    ]
}

fn differences() -> Vec<String> {
    vec![
        "mls-rs copies and encodes its whole tree with each commit, which is most of what the leader's CPU does over a warm \
         tree of a thousand members. Another implementation could do better; bytes would be the same."
            .into(),
        "An MLS newcomer checks the signature of every member and holds the whole tree from then on. A drone of Quiver knows \
         its leader and its own path."
            .into(),
        "Under the tree strategy eight newcomers and more are counted as over a medium that all share, where they follow by \
         the wraps for all. Over links each is sent a path message instead."
            .into(),
    ]
}

fn table(comparison: &MlsComparison, event: MembershipEvent) -> Table {
    let columns = vec![
        Column::new("drones", "drones", Unit::Count),
        Column::text("system", "system"),
        Column::new("leader_seconds", "leader CPU", Unit::Seconds).strong(),
        Column::new("leader_over_tree", "of Quiver's tree", Unit::Times),
        Column::new("member_seconds", "member CPU", Unit::Seconds),
        Column::new("newcomer_seconds", "newcomer CPU", Unit::Seconds),
        Column::new("broadcast_bytes", "broadcast", Unit::Bytes).strong(),
        Column::new("unicast_bytes", "unicast", Unit::Bytes),
        Column::new("bytes_over_tree", "of Quiver's tree", Unit::Times),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new(&format!("compare-{}", event.slug()), event.title(), columns);
    for drones in comparison.sizes() {
        let tree = comparison.cost(drones, System::Tree, event);
        for system in System::ALL {
            let Some(cost) = comparison.cost(drones, system, event) else { continue };
            table.push(vec![
                drones.into(),
                system.name().into(),
                cost.leader.into(),
                CellValue::ratio(Some(cost.leader.median), tree.map(|tree| tree.leader.median)),
                cost.member.into(),
                cost.newcomer.into(),
                cost.broadcast.into(),
                cost.unicast.into(),
                CellValue::ratio(bytes(Some(cost)), bytes(tree)),
                cost.leader.samples.into(),
            ]);
        }
    }
    table.notes = comparison.cuts.iter().map(|cut| note(comparison, cut)).collect();
    table
}

fn note(comparison: &MlsComparison, cut: &Cut) -> String {
    let (system, size) = (cut.system.name(), Unit::Count.show(cut.drones.into()));
    let budget = comparison.plan.budget.as_secs_f64();
    format!("{system}: cut at {size} drones after {budget} s of CPU time ({}).", cut.doing)
}

fn plot(comparison: &MlsComparison, quantity: &CostQuantity) -> Plot {
    let panel = |event: MembershipEvent| Panel {
        title: event.title().into(),
        series: System::ALL
            .into_iter()
            .filter_map(|system| series(comparison, quantity, system, event))
            .collect(),
    };
    Plot {
        slug: quantity.slug.into(),
        caption: quantity.caption.into(),
        x: Axis::log("drones", Unit::Count),
        y: Axis::log(quantity.title, quantity.unit),
        panels: MembershipEvent::ALL.map(panel).into(),
    }
}

fn series(
    comparison: &MlsComparison,
    quantity: &CostQuantity,
    system: System,
    event: MembershipEvent,
) -> Option<Series> {
    let figure = |drones: u32| {
        let value = (quantity.of)(comparison.cost(drones, system, event)?)?;
        Some((f64::from(drones), value))
    };
    let points: Vec<(f64, f64)> = comparison.sizes().into_iter().filter_map(figure).collect();
    let series = Series::new(system.name(), system.ink(), points);
    let series = if system == System::MlsWarm { series.dashed() } else { series };
    (!series.points.is_empty()).then_some(series)
}

/// Costs of a leave of one drone in the reference group, or else in the largest in which all systems were
/// measured.
fn highlights(comparison: &MlsComparison) -> Vec<Highlight> {
    let all = |drones: &u32| {
        System::ALL
            .into_iter()
            .all(|system| comparison.cost(*drones, system, MembershipEvent::LeaveOne).is_some())
    };
    let sizes: Vec<u32> = comparison.sizes().into_iter().filter(all).collect();
    let Some(drones) =
        sizes.iter().copied().find(|size| *size == REFERENCE).or_else(|| sizes.last().copied())
    else {
        return Vec::new();
    };
    QUANTITIES.iter().filter_map(|quantity| highlight(comparison, quantity, drones)).collect()
}

fn highlight(comparison: &MlsComparison, quantity: &CostQuantity, drones: u32) -> Option<Highlight> {
    let of = |system| (quantity.of)(comparison.cost(drones, system, MembershipEvent::LeaveOne)?);
    let [one, warm, flat, tree] = System::ALL.map(of);
    let (one, warm, flat, tree) = (one?, warm?, flat?, tree?);
    let show = |value| quantity.unit.show(value);
    Some(Highlight {
        what: format!("One of {} drones leaves, {}", Unit::Count.show(drones.into()), quantity.title),
        figure: Unit::Times.show(one / tree),
        beside: format!(
            "MLS with one committer {}, over a warm tree {}; Quiver flat {}, tree {}",
            show(one),
            show(warm),
            show(flat),
            show(tree)
        ),
    })
}

#[expect(clippy::cast_precision_loss, reason = "sizes here are far below 2^52")]
fn bytes(cost: Option<&Cost>) -> Option<f64> {
    cost.map(|cost| cost.bytes() as f64)
}
