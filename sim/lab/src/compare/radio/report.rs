//! Makes the report of a comparison over a radio. It says first where Quiver loses.

use quiver_contenders::schemes::SchemeKind;
use quiver_contenders::{ArenaEvent, Outcome};
use quiver_report::{
    Axis, CellValue, Column, Experiment, Highlight, Ink, Panel, Plot, Publication, Report, Series, Table,
    Unit,
};

use super::RadioComparison;
use crate::ainq::Making;
use crate::blank_report::blank_report;

/// A quantity of an outcome.
struct RadioQuantity {
    slug: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: Unit,
    of: fn(&Outcome) -> Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "bytes here are far below 2^52")]
fn bytes(outcome: &Outcome) -> Option<f64> {
    Some(outcome.bytes as f64)
}

const QUANTITIES: [RadioQuantity; 4] = [
    RadioQuantity {
        slug: "radio-bytes",
        title: "bytes on air",
        caption: "Bytes that all nodes send for the event, with all headers, acknowledgements and repetitions.",
        unit: Unit::Bytes,
        of: bytes,
    },
    RadioQuantity {
        slug: "radio-time",
        title: "until all have the key",
        caption: "Time from the command until the last member has the newest key.",
        unit: Unit::Seconds,
        of: |outcome| outcome.until[2].map(|time| time.as_secs_f64()),
    },
    RadioQuantity {
        slug: "radio-controller",
        title: "controller CPU",
        caption: "Processor time at the controller, delivery included, on the machine that made this report.",
        unit: Unit::Seconds,
        of: |outcome| Some(outcome.controller_cpu.as_secs_f64()),
    },
    RadioQuantity {
        slug: "radio-member",
        title: "member CPU",
        caption: "Processor time at a member, delivery included, on the machine that made this report.",
        unit: Unit::Seconds,
        of: |outcome| Some(outcome.member_cpu.as_secs_f64()),
    },
];

/// The comparison for people and programs.
#[must_use]
pub fn report(comparison: &RadioComparison, making: Making) -> Report {
    let plan = &comparison.plan;
    let mut lead = losses(comparison);
    lead.push(format!(
        "The same events over {} with a loss of {} %, each scheme for real: its machines exchange bytes, members that miss \
         something get it again, and every member's key is compared with the controller's.",
        plan.carrier,
        plan.loss * 100.0
    ));
    Report {
        slug: "compare-radio".into(),
        title: format!("Group-keying schemes over {}", plan.carrier),
        lead,
        highlights: highlights(comparison),
        experiments: [Some(events(comparison)), growth(comparison), Some(properties(comparison))]
            .into_iter()
            .flatten()
            .collect(),
        sources: sources(),
        passed: Some(comparison.violations.is_empty()),
        ..blank_report(making)
    }
}

/// The largest size at which every scheme played an event.
fn common_size(comparison: &RadioComparison, event: ArenaEvent) -> Option<u32> {
    let played = |drones: u32| {
        let mut schemes = comparison.plan.schemes.iter().filter(|scheme| scheme.has(event));
        schemes.all(|scheme| comparison.outcome(drones, *scheme, event).is_some())
    };
    comparison.plan.drones.iter().rev().copied().find(|drones| played(*drones))
}

const OURS: [SchemeKind; 3] = [SchemeKind::QuiverFlat, SchemeKind::QuiverTree, SchemeKind::QuiverTreeMlKem];

/// A sentence for each quantity in which another scheme is better than all of Quiver's.
fn losses(comparison: &RadioComparison) -> Vec<String> {
    let mut lines = Vec::new();
    for quantity in &QUANTITIES {
        let mut cases = Vec::new();
        for event in ArenaEvent::ALL {
            let Some(drones) = common_size(comparison, event) else { continue };
            let of = |scheme: SchemeKind| (quantity.of)(comparison.outcome(drones, scheme, event)?);
            let Some(ours) = OURS.into_iter().filter_map(of).min_by(f64::total_cmp) else { continue };
            let others = comparison.plan.schemes.iter().copied().filter(|scheme| !OURS.contains(scheme));
            let best = others
                .filter_map(|scheme| Some((scheme, of(scheme)?)))
                .min_by(|(_, a), (_, b)| a.total_cmp(b))
                .filter(|(_, theirs)| *theirs < ours);
            if let Some((scheme, theirs)) = best {
                cases.push(format!(
                    "{} ({drones} drones: {} {}, Quiver {})",
                    event.title().to_lowercase(),
                    scheme.name(),
                    quantity.unit.show(theirs),
                    quantity.unit.show(ours)
                ));
            }
        }
        if !cases.is_empty() {
            lines.push(format!("Quiver loses in {} when {}.", quantity.title, cases.join("; ")));
        }
    }
    if lines.is_empty() {
        lines.push(
            "In no quantity that is measured here is another scheme better than all of Quiver's.".into(),
        );
    }
    lines
}

fn events(comparison: &RadioComparison) -> Experiment {
    Experiment {
        slug: "events".into(),
        title: "What events cost".into(),
        about: vec![
            "One controller and its members, who all hear each other. A removal is the operator's word to the controller, \
             and that of several members a revocation by Quiver's KGC; a member that comes was enrolled before. An event is \
             over when all members have the newest key and the channel is quiet: acknowledgements and repetitions count."
                .into(),
        ],
        method: vec![
            "Schemes without a delivery of their own send fragments of one frame each; members report what they miss in \
             a window after the last fragment, and what anybody misses goes out again. Quiver's machines are those of its \
             services, with their own delivery; the whole handshake of a join counts, which no other scheme's does."
                .into(),
            "Processor time is that of this machine, at the controller and on average over up to eight members. Energy is \
             that of the transceivers of the radio's profile: computation is not in it."
                .into(),
            "MLS has one committer behind a perfect ordering service. Its tree stays blank but for that member's path, so that \
             a commit has a ciphertext for nearly each member: MLS at its worst. `lab compare` without a radio also \
             measures trees that are filled."
                .into(),
            "Eight of MLS's members compute in full; of the others the radio alone is real, because thousands of ratchet trees fit no memory."
                .into(),
            format!(
                "A scheme that has used {} s of processor time for one size, its preparation included, is cut there, also in \
                 the middle of an event, whose costs are then in no table. It plays no larger size.",
                comparison.plan.budget.as_secs_f64()
            ),
        ],
        plots: QUANTITIES.iter().map(|quantity| plot(comparison, quantity)).collect(),
        tables: ArenaEvent::ALL.into_iter().map(|event| table(comparison, event)).collect(),
        ..Experiment::default()
    }
}

fn table(comparison: &RadioComparison, event: ArenaEvent) -> Table {
    let columns = vec![
        Column::new("drones", "drones", Unit::Count),
        Column::text("scheme", "scheme"),
        Column::new("bytes", "bytes on air", Unit::Bytes).strong(),
        Column::new("frames", "frames", Unit::Count),
        Column::new("airtime_seconds", "airtime", Unit::Seconds).strong(),
        Column::new("controller_joules", "energy, controller (J)", Unit::Number),
        Column::new("all_joules", "energy, all (J)", Unit::Number),
        Column::new("controller_seconds", "controller CPU", Unit::Seconds),
        Column::new("member_seconds", "member CPU", Unit::Seconds),
        Column::new("half_seconds", "50 % have it", Unit::Seconds),
        Column::new("most_seconds", "99 %", Unit::Seconds),
        Column::new("all_seconds", "all", Unit::Seconds).strong(),
        Column::new("reached", "members with the key", Unit::Count),
        Column::new("members", "members", Unit::Count),
    ];
    let mut table = Table::new(&format!("radio-{}", event.slug()), event.title(), columns);
    for row in comparison.rows.iter().filter(|row| row.event == event) {
        let outcome = &row.outcome;
        let time = |index: usize| -> CellValue {
            outcome.until.get(index).copied().flatten().map(|time| time.as_secs_f64()).into()
        };
        table.push(vec![
            row.drones.into(),
            row.scheme.name().into(),
            bytes(outcome).into(),
            usize::try_from(outcome.frames).unwrap_or(usize::MAX).into(),
            outcome.airtime.as_secs_f64().into(),
            outcome.controller_energy.joules().into(),
            outcome.energy.joules().into(),
            outcome.controller_cpu.as_secs_f64().into(),
            outcome.member_cpu.as_secs_f64().into(),
            time(0),
            time(1),
            time(2),
            outcome.reached.into(),
            outcome.members.into(),
        ]);
        for complaint in &outcome.complaints {
            table.notes.push(format!("{}, {} drones: {complaint}.", row.scheme.name(), row.drones));
        }
    }
    let cuts = comparison.cuts.iter().filter(|cut| cut.event <= event);
    let budget = comparison.plan.budget.as_secs_f64();
    table.notes.extend(cuts.map(|cut| {
        format!(
            "{}: cut at {} drones when {}, because {budget} s of processor time were used up.",
            cut.scheme.name(),
            cut.drones,
            cut.event.title().to_lowercase()
        )
    }));
    if event == ArenaEvent::LoseController {
        table
            .notes
            .push("MLS loses no controller: any member commits, at the price of an expired key.".into());
    }
    table
}

/// Growth of costs between the smallest and the largest group that a scheme played; `None` if each played one size.
fn growth(comparison: &RadioComparison) -> Option<Experiment> {
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::text("event", "event"),
        Column::new("from", "from drones", Unit::Count),
        Column::new("to", "to drones", Unit::Count),
        Column::new("bytes", "exponent, bytes on air", Unit::Number),
        Column::new("controller", "exponent, controller CPU", Unit::Number).strong(),
        Column::new("member", "exponent, member CPU", Unit::Number).strong(),
    ];
    let caption = "Exponents: 1 is linear in the group's size, 0 does not depend on it";
    let mut table = Table::new("radio-growth", caption, columns);
    for scheme in &comparison.plan.schemes {
        for event in [ArenaEvent::Expire, ArenaEvent::RemoveOne] {
            let played = |drones: &&u32| comparison.outcome(**drones, *scheme, event).is_some();
            let sizes: Vec<u32> = comparison.plan.drones.iter().filter(played).copied().collect();
            let [from, .., to] = sizes[..] else { continue };
            let exponent = |of: fn(&Outcome) -> Option<f64>| -> CellValue {
                let cost =
                    |drones| of(comparison.outcome(drones, *scheme, event)?).filter(|cost| *cost > 0.0);
                let ratio = cost(to).zip(cost(from)).map(|(to, from)| to / from);
                ratio.map(|ratio| ratio.ln() / (f64::from(to) / f64::from(from)).ln()).into()
            };
            let [bytes, _, controller, member] = QUANTITIES.each_ref().map(|quantity| exponent(quantity.of));
            let (name, event) = (scheme.name().into(), event.title().into());
            table.push(vec![name, event, from.into(), to.into(), bytes, controller, member]);
        }
    }
    (!table.rows.is_empty()).then(|| Experiment {
        slug: "growth".into(),
        title: "How costs grow with the group, and what was published of MLS".into(),
        about: vec![
            "The exponent x of N^x between two sizes of the group: the smallest and the largest that the scheme played."
                .into(),
        ],
        published: vec![
            "RFC 9420 promises costs that grow with the logarithm of the group once its tree is filled. Soler, Dafonte, \
             Fernández-Veiga, Fernández Vilas and Nóvoa measured OpenMLS with emulated clients and found computation that \
             grows linearly even in the best case (arXiv 2502.18303v2, 2025): an exponent of 1, here for the member as well."
                .into(),
            "That is the claim of their summary. Their tables, those of RTS-UAV and those of the evaluation by the Blockpass \
             ID Lab (Cryptography 10(2), 20, 2026) could not be had in full, so that none of their figures stands here."
                .into(),
        ],
        method: vec![
            "Processor time includes the delivery: fragments, acknowledgements and repetitions, of which there are more in \
             a larger group."
                .into(),
        ],
        differences: vec![
            "Here one member commits and its tree stays blank, which is not the best case. `lab compare` without a radio \
             measures filled trees."
                .into(),
        ],
        tables: vec![table],
        ..Experiment::default()
    })
}

fn properties(comparison: &RadioComparison) -> Experiment {
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::text("leader", "needs a leader?"),
        Column::text("heals", "heals after a compromise?"),
        Column::text("proof", "proof"),
        Column::text("standard", "standard"),
        Column::text("quantum", "recordings closed to quantum computers?"),
        Column::text("notes", "how it runs here"),
    ];
    let mut facts = Table::new("radio-properties", "Properties that no figure shows", columns);
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::text("masks", "masks repeat"),
        Column::text("foreign", "takes foreign keys"),
        Column::text("back", "goes back on a replay"),
        Column::text("recordings", "a stolen long-term key opens recordings"),
        Column::text("invariants", "invariants broken without an adversary"),
    ];
    let caption = "What an adversary that knows no scheme finds by itself";
    let mut found = Table::new("radio-findings", caption, columns);
    let word = |found: bool| CellValue::from(if found { "yes" } else { "no" });
    for portrait in &comparison.portraits {
        let (name, of) = (portrait.scheme.name(), portrait.facts);
        facts.push(
            [name, of.needs_leader, of.heals, of.proof, of.standard, of.quantum, of.notes]
                .map(CellValue::from)
                .into(),
        );
        let findings = &portrait.findings;
        found.push(vec![
            name.into(),
            word(findings.masks_repeat),
            word(findings.takes_foreign_keys),
            word(findings.goes_back),
            word(findings.recordings_open),
            word(!findings.violations.is_empty()),
        ]);
    }
    for (scheme, drones, violation) in &comparison.violations {
        found.notes.push(format!("{}, {drones} drones: {violation}.", scheme.name()));
    }
    Experiment {
        slug: "properties".into(),
        title: "What no figure shows".into(),
        about: vec![
            "The adversary records everything, sends it again, makes a controller of its own from what is public, steals a \
             member's long-term secrets, and combines the key of a removed member with all it recorded. It knows nothing of \
             any scheme; what it finds of AinQ as published are the flaws that its documentation lists."
                .into(),
            "That nothing is found proves nothing; what is found is a fault, but for the recordings that a stolen long-term \
             key opens: there it is a missing property."
                .into(),
        ],
        tables: vec![facts, found],
        ..Experiment::default()
    }
}

/// Colour of a scheme, and whether its line is broken: no two schemes have both in common.
const fn ink(scheme: SchemeKind) -> (Ink, bool) {
    match scheme {
        SchemeKind::QuiverFlat => (Ink::Flat, false),
        SchemeKind::QuiverTree => (Ink::Tree, false),
        SchemeKind::QuiverTreeMlKem => (Ink::Tree, true),
        SchemeKind::AinqAsPublished => (Ink::Paper, false),
        SchemeKind::MlsRs => (Ink::Rival, false),
        SchemeKind::Lkh => (Ink::Rival, true),
        SchemeKind::Pairwise => (Ink::Extra, false),
        SchemeKind::GroupOscore => (Ink::Extra, true),
        // Figures of publications, whose colour this is, are in no plot over a radio.
        SchemeKind::OpenMls => (Ink::Published, false),
        SchemeKind::OpenMlsXWing => (Ink::Published, true),
    }
}

fn plot(comparison: &RadioComparison, quantity: &RadioQuantity) -> Plot {
    let series = |scheme: SchemeKind, event: ArenaEvent| {
        let figure = |drones: &u32| {
            let value = (quantity.of)(comparison.outcome(*drones, scheme, event)?)?;
            (value > 0.0).then_some((f64::from(*drones), value))
        };
        let points: Vec<(f64, f64)> = comparison.plan.drones.iter().filter_map(figure).collect();
        let (ink, dashed) = ink(scheme);
        let series = Series::new(scheme.name(), ink, points);
        let series = if dashed { series.dashed() } else { series };
        (!series.points.is_empty()).then_some(series)
    };
    let panel = |event: ArenaEvent| Panel {
        title: event.title().into(),
        series: comparison.plan.schemes.iter().filter_map(|scheme| series(*scheme, event)).collect(),
    };
    Plot {
        slug: quantity.slug.into(),
        caption: quantity.caption.into(),
        x: Axis::log("drones", Unit::Count),
        y: Axis::log(quantity.title, quantity.unit),
        panels: ArenaEvent::ALL.into_iter().map(panel).filter(|panel| !panel.series.is_empty()).collect(),
    }
}

/// Bytes and time of a removal, in the largest group that all schemes played.
fn highlights(comparison: &RadioComparison) -> Vec<Highlight> {
    let event = ArenaEvent::RemoveOne;
    let Some(drones) = common_size(comparison, event) else { return Vec::new() };
    let highlight = |quantity: &RadioQuantity| {
        let of = |scheme: SchemeKind| (quantity.of)(comparison.outcome(drones, scheme, event)?);
        let mut all: Vec<(SchemeKind, f64)> =
            comparison.plan.schemes.iter().filter_map(|scheme| Some((*scheme, of(*scheme)?))).collect();
        all.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let ((best, figure), rest) = all.split_first()?;
        let beside =
            rest.iter().map(|(scheme, figure)| format!("{} {}", scheme.name(), quantity.unit.show(*figure)));
        Some(Highlight {
            what: format!("One of {drones} drones is removed, {}: {}", quantity.title, best.name()),
            figure: quantity.unit.show(*figure),
            beside: beside.collect::<Vec<_>>().join("; "),
        })
    };
    QUANTITIES.iter().take(2).filter_map(highlight).collect()
}

fn sources() -> Vec<Publication> {
    let source = |citation: &str, link: &str| Publication { citation: citation.into(), link: link.into() };
    vec![
        source(
            "Frimpong, Rabbaninejad, Michalas: Arrows in a Quiver: A Secure Certificateless Group Key Distribution Protocol \
             for Drones. NordSec 2021.",
            "https://eprint.iacr.org/2021/1372",
        ),
        source(
            "Wallner, Harder, Agee: Key Management for Multicast: Issues and Architectures. RFC 2627, 1999.",
            "https://www.rfc-editor.org/rfc/rfc2627",
        ),
        source(
            "Palombini, Tiloca: Key Provisioning for Group Communication Using Authentication and Authorization for \
             Constrained Environments (ACE). RFC 9594, 2024.",
            "https://www.rfc-editor.org/rfc/rfc9594",
        ),
        source(
            "Tiloca, Park, Palombini: Key Management for Group Object Security for Constrained RESTful Environments (Group \
             OSCORE) Using ACE. draft-ietf-ace-key-groupcomm-oscore.",
            "https://datatracker.ietf.org/doc/draft-ietf-ace-key-groupcomm-oscore/",
        ),
        source(
            "Barnes, Beurdouche, Robert, Millican, Omara, Cohn-Gordon: The Messaging Layer Security (MLS) Protocol. RFC 9420, \
             2023.",
            "https://www.rfc-editor.org/rfc/rfc9420",
        ),
        source(
            "Soler, Dafonte, Fernández-Veiga, Fernández Vilas, Nóvoa: Analysis of Efficiency of the Messaging Layer Security \
             protocol in Experimental Settings. arXiv 2502.18303v2, 2025.",
            "https://arxiv.org/abs/2502.18303v2",
        ),
        source(
            "Securely Scaling Autonomy: The Role of Cryptography in Future Unmanned Aircraft Systems (UASs). Cryptography \
             10(2), 20, 2026.",
            "https://www.mdpi.com/2410-387X/10/2/20",
        ),
    ]
}
