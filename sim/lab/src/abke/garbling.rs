//! Measures garbling and evaluating by themselves.

use std::hint::black_box;

use quiver_garble::{Evaluator, Garbler, GarblingProgram, GarblingScheme, HalfGates, Label, PrivacyFree};
use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Observer, Plot, Series, Table, Unit};

use super::exchange_setup::circuit;
use super::plan::{AbkePlan, PolicySize};
use super::published::{ExchangeSide, PublishedAbke};
use super::summary::method;
use crate::measure::{Effort, Timing, repeat_on};
use crate::{LabError, Result};

/// Input bits of the circuits.
const INPUTS: u32 = 200;
/// Public, and another in each run.
const RUN: [u8; 16] = [7; 16];

/// Times of a circuit.
struct GarblingRow {
    scheme: &'static str,
    gates: u32,
    garble: Timing,
    evaluate: Timing,
}

pub(super) fn experiment(
    plan: &AbkePlan,
    published: &PublishedAbke,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("garbling", 2 * plan.garbled.len());
    let mut rows = Vec::new();
    for &gates in &plan.garbled {
        rows.push(row::<PrivacyFree>("privacy-free", gates, plan)?);
        observer.advance(1);
        rows.push(row::<HalfGates>("half gates", gates, plan)?);
        observer.advance(1);
    }
    Ok(Experiment {
        slug: "garbling".into(),
        title: "Garbling".into(),
        about: vec![
            "A client knows all inputs of the circuit: privacy-free garbling, of one ciphertext for each AND gate, is enough. Half gates, with two, \
             are what circuits take otherwise."
                .into(),
        ],
        published: vec![
            "5 ms to garble 100,000 gates and 3 ms to evaluate them: 20 and 33 million gates per second.".into(),
        ],
        method: method(plan),
        differences: vec![
            "Without the transcript: in the exchange, tables are hashed as well, which the steps of the exchange count.".into(),
            "Circuits of as many XORs, and a sum over all ANDs. The hash's key changes every 4,096 gates.".into(),
        ],
        plots: vec![plot(&rows)],
        tables: vec![table(published, &rows)],
    })
}

fn row<S: GarblingScheme>(scheme: &'static str, gates: u32, plan: &AbkePlan) -> Result<GarblingRow> {
    let attributes: Vec<bool> = (0..INPUTS).map(|at| at.is_multiple_of(3)).collect();
    let program = GarblingProgram::new(&circuit(PolicySize { gates, attributes: INPUTS }, &attributes)?);
    let (garble, evaluate) = timings::<S>(&program, &attributes, plan.effort)?;
    Ok(GarblingRow { scheme, gates, garble, evaluate })
}

fn timings<S: GarblingScheme>(
    program: &GarblingProgram,
    attributes: &[bool],
    effort: Effort,
) -> Result<(Timing, Timing)> {
    let mut tables = Vec::with_capacity(program.ands() * S::CIPHERTEXTS);
    let new = || Garbler::<S>::new(program, &RUN, &mut super::exchange_setup::seeded(1));
    let garble = repeat_on(
        effort,
        &mut tables,
        |_| Ok(new()),
        |tables, mut garbler| {
            tables.clear();
            garbler.garble(program.steps(), |table| tables.push(table))?;
            Ok::<_, LabError>(garbler)
        },
    )?;
    let mut garbler = new();
    let labels = attributes.iter().enumerate().map(|(at, bit)| Ok(garbler.input(at)?.of(*bit)));
    let labels = labels.collect::<Result<Vec<Label>>>()?;
    garbler.garble(program.steps(), |_| ())?;
    let Some(output) = program.outputs().first().copied() else {
        return Err(LabError::WrongKey("a circuit without an output"));
    };
    let wanted = garbler.output(output)?.of(true);
    let begin = |_: &mut ()| Ok(Evaluator::<S>::new(program, &RUN, new().one(), &labels)?);
    let evaluate = repeat_on(effort, &mut (), begin, |(), mut evaluator| {
        evaluator.evaluate(program.steps(), &mut tables.iter().copied())?;
        match evaluator.output(output)? == wanted {
            true => Ok(black_box(evaluator)),
            false => Err(LabError::WrongKey("garbling and evaluating")),
        }
    })?;
    Ok((garble, evaluate))
}

/// AND gates per second.
fn rate(gates: u32, seconds: f64) -> CellValue {
    CellValue::ratio(Some(f64::from(gates)), Some(seconds))
}

fn table(published: &PublishedAbke, rows: &[GarblingRow]) -> Table {
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::new("gates", "AND gates", Unit::Count),
        Column::new("published_garble_seconds", "published, garble", Unit::Seconds),
        Column::new("garble_seconds", "garble", Unit::Seconds),
        Column::new("published_over_garble", "published / here", Unit::Times).strong(),
        Column::new("garble_gates_per_second", "gates garbled per second", Unit::Count).strong(),
        Column::new("published_evaluate_seconds", "published, evaluate", Unit::Seconds),
        Column::new("evaluate_seconds", "evaluate", Unit::Seconds),
        Column::new("published_over_evaluate", "published / here", Unit::Times).strong(),
        Column::new("evaluate_gates_per_second", "gates evaluated per second", Unit::Count).strong(),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new("garbling", "Garbling and evaluating, by AND gates", columns);
    for GarblingRow { scheme, gates, garble, evaluate } in rows {
        let size = PolicySize { gates: *gates, attributes: INPUTS };
        let (theirs_garble, theirs_evaluate) = (
            published.seconds(size, ExchangeSide::Server, "garble"),
            published.seconds(size, ExchangeSide::Client, "evaluate"),
        );
        table.push(vec![
            (*scheme).into(),
            (*gates).into(),
            theirs_garble.into(),
            (*garble).into(),
            CellValue::ratio(theirs_garble, Some(garble.median)),
            rate(*gates, garble.median),
            theirs_evaluate.into(),
            (*evaluate).into(),
            CellValue::ratio(theirs_evaluate, Some(evaluate.median)),
            rate(*gates, evaluate.median),
            garble.samples.into(),
        ]);
    }
    table
}

fn plot(rows: &[GarblingRow]) -> Plot {
    let points = |scheme: &str, of: fn(&GarblingRow) -> Timing| -> Vec<(f64, f64)> {
        let rows = rows.iter().filter(|row| row.scheme == scheme);
        rows.map(|row| (f64::from(row.gates), f64::from(row.gates) / of(row).median)).collect()
    };
    let mut series = Vec::new();
    for (scheme, ink) in [("privacy-free", Ink::Flat), ("half gates", Ink::Tree)] {
        series.push(Series::new(&format!("{scheme}, garble"), ink, points(scheme, |row| row.garble)));
        series.push(
            Series::new(&format!("{scheme}, evaluate"), ink, points(scheme, |row| row.evaluate)).dashed(),
        );
    }
    let (x, y) = (Axis::log("AND gates", Unit::Count), Axis::linear("gates per second", Unit::Count));
    Plot::single("garbling", "AND gates per second", x, y, series)
}
