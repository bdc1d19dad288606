//! Measures the memory that encryption and decryption take.

use std::hint::black_box;

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06};
use quiver_policy::AccessTree;
use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Observer, Panel, Plot, Series, Table, Unit};
use quiver_yct14::InsecureYct14;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::measured_scheme::MeasuredScheme;
use super::operation::{ReferenceScheme, SchemeAlgorithm};
use super::plan::AbePlan;
use super::published::PublishedAbe;
use super::random_trees::{attributes, conjunction, layered, listed};
use crate::Result;
use crate::heap::Heap;

/// The most bytes of heap that the operations hold at a time, of what they themselves have taken.
#[derive(Clone, Copy)]
struct Peak {
    encrypt: u64,
    decrypt: u64,
}

/// All schemes at one size.
struct MemoryRow {
    /// Layers or attributes.
    size: usize,
    gpsw: Peak,
    yct: Peak,
    fabeo_kp: Peak,
    fabeo_cp: Peak,
}

impl MemoryRow {
    fn new(plan: &AbePlan, heap: &dyn Heap, size: usize, tree: &AccessTree, leaves: usize) -> Result<Self> {
        Ok(Self {
            size,
            gpsw: peak::<Gpsw06>(plan, heap, tree, leaves)?,
            yct: peak::<InsecureYct14>(plan, heap, tree, leaves)?,
            fabeo_kp: peak::<FabeoKp>(plan, heap, tree, leaves)?,
            fabeo_cp: peak::<FabeoCp>(plan, heap, tree, leaves)?,
        })
    }

    /// Peaks in the order of the columns.
    fn peaks(&self, operation: SchemeAlgorithm) -> [f64; 4] {
        [self.gpsw, self.yct, self.fabeo_kp, self.fabeo_cp].map(|peak| peak.of(operation))
    }
}

impl Peak {
    #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 bytes")]
    const fn of(self, operation: SchemeAlgorithm) -> f64 {
        match operation {
            SchemeAlgorithm::Encrypt => self.encrypt as f64,
            _ => self.decrypt as f64,
        }
    }
}

/// Number of memory measurements.
const TIMES: usize = 9;

/// Operations whose memory is counted.
const OPERATIONS: [SchemeAlgorithm; 2] = [SchemeAlgorithm::Encrypt, SchemeAlgorithm::Decrypt];

/// The schemes in the order of the columns.
const SCHEMES: [(&str, &str, Ink); 4] = [
    ("gpsw06", Gpsw06::NAME, Ink::Paper),
    ("yct14", InsecureYct14::NAME, Ink::Extra),
    ("fabeo22_kp", FabeoKp::NAME, Ink::Flat),
    ("fabeo22_cp", FabeoCp::NAME, Ink::Tree),
];

pub(super) fn measure(
    plan: &AbePlan,
    published: &PublishedAbe,
    heap: &dyn Heap,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("memory", plan.layers.len() + plan.attributes.len());
    let mut by_layers = Vec::new();
    for &layers in &plan.layers {
        by_layers.push(MemoryRow::new(
            plan,
            heap,
            layers,
            &layered(AbePlan::LEAVES, layers)?,
            AbePlan::LEAVES,
        )?);
        observer.advance(1);
    }
    let mut by_attributes = Vec::new();
    for &count in &plan.attributes {
        by_attributes.push(MemoryRow::new(plan, heap, count, &conjunction(count)?, count)?);
        observer.advance(1);
    }
    let mut tables: Vec<Table> =
        OPERATIONS.iter().map(|operation| layers_table(*operation, published, &by_layers)).collect();
    tables.extend(OPERATIONS.iter().map(|operation| attributes_table(*operation, &by_attributes)));
    tables.push(flash(published));
    Ok(experiment(plot(&by_attributes), tables))
}

fn experiment(plot: Plot, tables: Vec<Table>) -> Experiment {
    Experiment {
        slug: "memory".into(),
        title: "Memory".into(),
        about: vec![
            "The published decryption recurses into the access tree and takes more memory with every layer of it. Ours walks trees \
             iteratively: layers cost nothing but their gates."
                .into(),
        ],
        published: vec![
            "Bytes of RAM on the nRF52840 for encryption and decryption with trees of one to four layers; program memory of the \
             two schemes."
                .into(),
        ],
        method: vec![
            format!(
                "The most bytes of heap that one operation holds at a time, counted by the allocator, the result included and keys \
                 and ciphertexts that were there before not; the median of {TIMES} times. Trees by layers have {} leaves, all of which are needed, in so many \
                 conjunctions one within the other.",
                AbePlan::LEAVES
            ),
            "On this machine, with 64-bit pointers and blst. The stack is not counted, which holds single elements but nothing \
             that grows with policy or attributes."
                .into(),
        ],
        differences: vec![
            "Published is what a microcontroller had to provide, stack and heap; ours is heap on a desktop machine. So the columns \
             show how memory grows, and their ratio means nothing."
                .into(),
        ],
        plots: vec![plot],
        tables,
    }
}

fn peak<S: MeasuredScheme>(
    plan: &AbePlan,
    heap: &dyn Heap,
    tree: &AccessTree,
    leaves: usize,
) -> Result<Peak> {
    let mut rng = ChaCha20Rng::seed_from_u64(plan.seed);
    let (parameters, master) = S::setup(&S::universe(&listed(leaves)?), &mut rng)?;
    let (of_key, of_ciphertext) = S::terms(tree, &attributes(leaves)?);
    let key = S::derive(&parameters, &master, &of_key, &mut rng)?;
    let (ciphertext, _) = S::encapsulate(&parameters, &of_ciphertext, &mut rng)?;
    let encrypt = counted(heap, || S::encapsulate(&parameters, &of_ciphertext, &mut rng));
    let decrypt = counted(heap, || S::decapsulate(&parameters, &key, &ciphertext));
    Ok(Peak { encrypt, decrypt })
}

/// The most bytes that an operation, its result included, holds at a time: the median of several times, since
/// whatever other threads do meanwhile is counted, too.
fn counted<R>(heap: &dyn Heap, mut operation: impl FnMut() -> R) -> u64 {
    let mut peaks = [0; TIMES];
    for peak in &mut peaks {
        heap.reset();
        drop(black_box(operation()));
        *peak = heap.peak();
    }
    peaks.sort_unstable();
    peaks[TIMES / 2] as u64
}

fn columns() -> impl Iterator<Item = Column> {
    SCHEMES.iter().map(|(key, name, _)| Column::new(&format!("{key}_bytes"), name, Unit::Bytes))
}

fn layers_table(operation: SchemeAlgorithm, published: &PublishedAbe, rows: &[MemoryRow]) -> Table {
    let mut all = vec![
        Column::new("layers", "layers", Unit::Count),
        Column::new("gpsw06_soc_bytes", "GPSW06 published, SoC", Unit::Bytes),
        Column::new("yct14_soc_bytes", "YCT14 published, SoC", Unit::Bytes),
    ];
    all.extend(columns());
    let slug = format!("memory-layers-{}", operation.key());
    let mut table = Table::new(&slug, &format!("{}: memory by layers of the tree", operation.title()), all);
    for row in rows {
        let soc = |scheme| published.ram(scheme, operation, row.size).into();
        let mut values = vec![row.size.into(), soc(ReferenceScheme::Gpsw), soc(ReferenceScheme::Yct)];
        values.extend(row.peaks(operation).map(CellValue::from));
        table.push(values);
    }
    table
}

fn attributes_table(operation: SchemeAlgorithm, rows: &[MemoryRow]) -> Table {
    let all =
        std::iter::once(Column::new("attributes", "attributes", Unit::Count)).chain(columns()).collect();
    let slug = format!("memory-attributes-{}", operation.key());
    let caption = format!("{}: memory by attributes, all of them needed", operation.title());
    let mut table = Table::new(&slug, &caption, all);
    for row in rows {
        let mut values = vec![row.size.into()];
        values.extend(row.peaks(operation).map(CellValue::from));
        table.push(values);
    }
    table
}

fn flash(published: &PublishedAbe) -> Table {
    let mut columns = vec![Column::text("scheme", "scheme, published")];
    columns.extend(
        ["size", "text", "bss", "rodata"]
            .map(|section| Column::new(&format!("{section}_bytes"), section, Unit::Bytes)),
    );
    let mut table = Table::new("flash", "Program memory on the SoC", columns);
    for row in &published.flash {
        let values = [row.size, row.text, row.bss, row.rodata].map(CellValue::from);
        table.push(std::iter::once(row.scheme.as_str().into()).chain(values).collect());
    }
    table.notes.push("Published figures only: a simulator has no flash.".into());
    table
}

#[expect(clippy::cast_precision_loss, reason = "numbers of attributes are small")]
fn plot(rows: &[MemoryRow]) -> Plot {
    let panel = |operation: SchemeAlgorithm| {
        let series = SCHEMES.iter().enumerate().map(|(place, (_, name, ink))| {
            let point = |row: &MemoryRow| Some((row.size as f64, *row.peaks(operation).get(place)?));
            Series::new(name, *ink, rows.iter().filter_map(point).collect())
        });
        Panel { title: operation.title().into(), series: series.collect() }
    };
    Plot {
        slug: "memory".into(),
        caption: "Heap by attributes.".into(),
        x: Axis::linear("attributes", Unit::Count),
        y: Axis::linear("heap", Unit::Bytes),
        panels: OPERATIONS.map(panel).into(),
    }
}
