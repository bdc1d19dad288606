//! Tables of everything but the schemes that grow with attributes.

use quiver_report::{CellValue, Column, Experiment, Table, Unit};

use super::boards::Boards;
use super::figures::{BoardMeasurements, Figure};
use crate::abe::operation::PublishedPlatform;
use crate::abe::published::PublishedAbe;

/// Method of the emulated figures, the same for all.
pub(super) fn method() -> Vec<String> {
    vec![
        "Natively: the bench shell in this process, wall times, averages over its iterations.".into(),
        "Emulated: instructions that QEMU counts (mps2-an386, a Cortex-M4F with the memory map of an nRF52840), recorded in \
         embedded/figures.csv and checked in CI. Milliseconds at 64 MHz are estimated from them: by cycles per instruction, at \
         least and at most, according to the processor's timing tables and without flash wait states. No board was measured."
            .into(),
    ]
}

/// The columns of [`values`].
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::new("native_seconds", "native", Unit::Seconds),
        Column::new("instructions", "instructions, emulated", Unit::Count).strong(),
        Column::new("low_seconds", "at 64 MHz, low", Unit::Seconds),
        Column::new("high_seconds", "at 64 MHz, high", Unit::Seconds).strong(),
        Column::new("heap_bytes", "heap", Unit::Bytes),
        Column::new("stack_bytes", "stack", Unit::Bytes),
    ]
}

pub(super) fn values(figure: Figure) -> Vec<CellValue> {
    let Figure { native, instructions, low, high, heap, stack } = figure;
    [native, instructions, low, high, heap, stack].map(CellValue::from).into()
}

/// AES and RSA, which were published, and what Quiver uses instead.
pub(super) fn symmetric(boards: &Boards, measured: &BoardMeasurements) -> Experiment {
    Experiment {
        slug: "symmetric".into(),
        title: "Ciphers, hashing and RSA".into(),
        about: vec![
            "What a bench shell for RIOT measured, with the same parameters; and SHA-256 and ChaCha20-Poly1305, which are what \
             Quiver uses."
                .into(),
        ],
        published: vec!["Averages, minima and maxima of AES-128 on an IoT-LAB M3 node (Cortex-M3, 72 MHz), of AES-128 and RSA-1024 natively.".into()],
        method: method(),
        differences: vec![
            "What the published figure of RSA counts is not said; beside it stands our decryption. RSA-1024 is too short for \
             anything; nothing in Quiver uses RSA or AES."
                .into(),
        ],
        tables: vec![published_ciphers(boards, measured), own_ciphers(measured)],
        ..Experiment::default()
    }
}

fn published_ciphers(boards: &Boards, measured: &BoardMeasurements) -> Table {
    let mut columns = vec![
        Column::text("board", "published on"),
        Column::text("algorithm", "algorithm"),
        Column::new("size", "blocks or bytes", Unit::Count),
        Column::new("iterations", "iterations", Unit::Count),
        Column::new("published_seconds", "published, average", Unit::Seconds),
        Column::new("published_min_seconds", "minimum", Unit::Seconds),
        Column::new("published_max_seconds", "maximum", Unit::Seconds),
    ];
    columns.extend(self::columns());
    columns.push(Column::new("published_over_native", "published / native", Unit::Times));
    let mut table = Table::new("board-ciphers", "AES and RSA", columns);
    for row in &boards.0 {
        let (benchmark, parameters) = row.ours();
        let figure = measured.figure(benchmark, &parameters);
        let [average, minimum, maximum] = row.seconds();
        let mut cells: Vec<CellValue> = vec![
            row.board.as_str().into(),
            row.algorithm.as_str().into(),
            row.size.into(),
            row.iterations.into(),
        ];
        cells.extend([average, minimum, maximum].map(CellValue::from));
        cells.extend(values(figure));
        cells.push(CellValue::ratio(Some(average).filter(|_| row.board == "native"), figure.native));
        table.push(cells);
    }
    table
}

/// A table of every benchmark whose name has this prefix.
fn benchmarks(measured: &BoardMeasurements, slug: &str, caption: &str, prefixes: &[&str]) -> Table {
    let mut columns = vec![Column::text("benchmark", "benchmark"), Column::text("parameters", "parameters")];
    columns.extend(self::columns());
    let mut table = Table::new(slug, caption, columns);
    for (benchmark, parameters) in prefixes.iter().flat_map(|prefix| measured.beginning(prefix)) {
        let mut cells: Vec<CellValue> = vec![benchmark.into(), parameters.into()];
        cells.extend(values(measured.figure(benchmark, parameters)));
        table.push(cells);
    }
    table
}

fn own_ciphers(measured: &BoardMeasurements) -> Table {
    benchmarks(measured, "board-hashing", "Hashing and authenticated encryption", &["sha", "aead"])
}

/// AinQ at an edge.
pub(super) fn edge(measured: &BoardMeasurements) -> Experiment {
    Experiment {
        slug: "edge".into(),
        title: "AinQ at an edge drone".into(),
        about: vec![
            "What enrolment, a first group key and a re-key cost the drone. First keys and re-keys are whole messages of a real leader of a \
             group of 100, handled by the real machine: from the bytes to the key in use."
                .into(),
        ],
        method: method(),
        differences: vec![
            "`-unsigned` is a re-key without the verification of the leader's signature, measured in the same iteration and taken \
             off. Storing the new state is not counted."
                .into(),
        ],
        tables: vec![benchmarks(measured, "board-edge", "AinQ at an edge drone", &["ainq"])],
        ..Experiment::default()
    }
}

/// The benchmarks of the shell beside the operations as they are called in the publication.
const ELEMENTS: [(&str, &str); 13] = [
    ("Sample from Fr", "group sample-fr"),
    ("Sample from G1", "group sample-g1"),
    ("Sample from G2", "group sample-g2"),
    ("Sample from GT", "group sample-gt"),
    ("Group operation G1", "group add-g1"),
    ("Group operation G2", "group add-g2"),
    ("Group operation GT", "group add-gt"),
    ("Exponentiation in G1", "group multiply-g1"),
    ("Exponentiation in G2", "group multiply-g2"),
    ("Exponentiation in GT", "group multiply-gt"),
    ("Pairing", "pairing"),
    ("Hash to G1 (RFC 9380)", "group hash-g1"),
    ("Hash to G2 (RFC 9380)", "group hash-g2"),
];

/// Elements of the groups, and the pairing.
pub(super) fn groups(published: &PublishedAbe, measured: &BoardMeasurements) -> Experiment {
    let mut columns = vec![
        Column::text("operation", "operation"),
        Column::new("soc_seconds", "published, SoC", Unit::Seconds),
    ];
    columns.extend(self::columns());
    columns.push(Column::new("soc_over_high", "SoC / high", Unit::Times).strong());
    let mut table = Table::new("board-groups", "Elements of the groups", columns);
    for (name, benchmark) in ELEMENTS {
        let parameters = if benchmark == "pairing" { "BLS12-381, 1 pairs" } else { "BLS12-381" };
        let (soc, figure) =
            (published.element(PublishedPlatform::Soc, name), measured.figure(benchmark, parameters));
        let mut cells: Vec<CellValue> = vec![name.into(), soc.into()];
        cells.extend(values(figure));
        cells.push(CellValue::ratio(soc, figure.high));
        table.push(cells);
    }
    Experiment {
        slug: "board-groups".into(),
        title: "Groups and the pairing".into(),
        about: vec!["What attribute-based encryption is made of.".into()],
        published: vec!["Times on an nRF52840 at 64 MHz, over a BN curve of 254 bits.".into()],
        method: method(),
        differences: vec![
            "BLS12-381 has a field of 381 bits: a multiplication in it costs about twice as much, and the group is about twenty \
             bits stronger."
                .into(),
        ],
        tables: vec![table],
        ..Experiment::default()
    }
}

/// Flash and RAM.
pub(super) fn images(published: &PublishedAbe, measured: &BoardMeasurements) -> Experiment {
    let columns = vec![
        Column::text("image", "image"),
        Column::text("from", "from"),
        Column::new("flash_bytes", "flash", Unit::Bytes).strong(),
        Column::new("static_ram_bytes", "static RAM", Unit::Bytes).strong(),
    ];
    let mut table = Table::new("images", "Flash and static RAM", columns);
    for row in &published.flash {
        table.push(vec![
            row.scheme.as_str().into(),
            "published".into(),
            (row.text + row.rodata).into(),
            row.bss.into(),
        ]);
    }
    for (image, flash, ram) in measured.images() {
        table.push(vec![image.into(), "recorded".into(), flash.into(), ram.into()]);
    }
    Experiment {
        slug: "images".into(),
        title: "Flash and RAM of images".into(),
        about: vec!["An nRF52840 has 1 MB of flash and 256 KB of RAM.".into()],
        published: vec!["Sections of a program with one scheme: text and rodata as flash, bss as RAM.".into()],
        method: vec![
            "Sections of the linked images, as CI measures them; recorded in embedded/figures.csv. Peaks of heap and stack are in the \
             tables of the benchmarks."
                .into(),
        ],
        differences: vec![
            "The published programs have one scheme and nothing else. Ours are whole drones: link, enrolment, group keys, \
             storage, console."
                .into(),
        ],
        tables: vec![table],
        ..Experiment::default()
    }
}
