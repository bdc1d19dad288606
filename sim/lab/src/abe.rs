//! The published evaluation of attribute-based encryption on a laptop and a microcontroller beside ours.
//!
//! Source: Bücheler, *Implementation of ABE in Rust on ARM Cortex-M*, Technical University of Munich, evaluation.
//!
//! | experiment | published | ours |
//! |---|---|---|
//! | `overview` | – | every operation at the most attributes |
//! | `groups` | sampling, group operation, power, pairing | the same in BLS12-381 |
//! | `gpsw06`, `yct14` | setup, encryption, key generation, decryption for 1 to 30 attributes | the same |
//! | `fabeo22` | – | the same, with the policy in the key and in the ciphertext |
//! | `sizes` | – | bytes of parameters, keys and ciphertexts |
//! | `memory` | RAM by layers of the tree, flash | heap by layers and by attributes |
//!
//! YCT14 is broken (`quiver_abe::yct14` has the attack). It is here because it was measured, and labelled wherever it appears.

mod course;
mod fabeo;
mod forest;
mod groups;
mod memory;
pub(crate) mod operation;
mod overview;
mod plan;
pub(crate) mod published;
mod reference;
mod sizes;
mod subject;
mod summary;

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, InsecureYct14};
use quiver_report::{Machine, Making, Observer, Report};

use self::course::Course;
use self::forest::Forest;
pub use self::plan::Plan;
use self::published::Published;
use crate::Result;
use crate::heap::Heap;

/// What was measured of every scheme, by attributes.
struct Courses {
    gpsw: Course,
    yct: Course,
    fabeo_kp: Course,
    fabeo_cp: Course,
}

/// Measures everything. `heap` is the process's allocator.
///
/// # Errors
/// [`Abe`](crate::LabError::Abe) if a scheme refuses what it is asked to do, and
/// [`WrongKey`](crate::LabError::WrongKey) if it opens something else than was sealed.
pub fn reproduce(
    plan: &Plan,
    making: Making,
    heap: &dyn Heap,
    observer: &mut dyn Observer,
) -> Result<Report> {
    let published = Published::read()?;
    let groups = groups::measure(plan, &published, observer);
    let forest = Forest::grow(plan)?;
    let courses = Courses {
        gpsw: course::measure::<Gpsw06>(plan, &forest, observer)?,
        yct: course::measure::<InsecureYct14>(plan, &forest, observer)?,
        fabeo_kp: course::measure::<FabeoKp>(plan, &forest, observer)?,
        fabeo_cp: course::measure::<FabeoCp>(plan, &forest, observer)?,
    };
    let memory = memory::measure(plan, &published, heap, observer)?;
    let overview = overview::experiment(&published, &courses);
    let highlights = summary::highlights(&overview);
    let experiments = vec![
        overview,
        groups,
        reference::gpsw(plan, &published, &courses),
        reference::yct(plan, &published, &courses),
        fabeo::experiment(plan, &published, &courses),
        sizes::experiment(&courses),
        memory,
    ];
    Ok(Report {
        slug: "abe".into(),
        title: "Attribute-based encryption, measured again".into(),
        lead: summary::lead(),
        highlights,
        experiments,
        sources: summary::sources(),
        machine: Machine::here(),
        date: making.date,
        version: making.version,
        command: making.command,
    })
}
