//! The published evaluation of attribute-based encryption on a laptop and a microcontroller beside ours.
//!
//! Source: Bücheler, *Implementation of ABE in Rust on ARM Cortex-M*, Technical University of Munich,
//! evaluation.
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
//! YCT14 is broken (`quiver_yct14` has the attack). It is here because it was measured, and labelled
//! wherever it appears.

mod attribute_growth;
mod fabeo;
mod groups;
mod measured_scheme;
mod memory;
pub(crate) mod operation;
mod overview;
mod plan;
pub(crate) mod published;
mod random_trees;
mod reference;
mod sizes;
mod summary;

use quiver_abe::{AbeError, FabeoCp, FabeoKp, Gpsw06};
use quiver_policy::Fault;
use quiver_report::{Making, Observer, Report};
use quiver_yct14::InsecureYct14;

use self::attribute_growth::AttributeGrowth;
pub use self::plan::AbePlan;
use self::published::PublishedAbe;
use self::random_trees::RandomTrees;
use crate::blank_report::blank_report;
use crate::heap::Heap;
use crate::{LabError, Result};

/// Measurements of every scheme, by attributes.
struct SchemeGrowths {
    gpsw: AttributeGrowth,
    yct: AttributeGrowth,
    fabeo_kp: AttributeGrowth,
    fabeo_cp: AttributeGrowth,
}

impl From<AbeError> for LabError {
    fn from(error: AbeError) -> Self {
        Self::refused("attribute-based encryption", error)
    }
}

impl From<Fault> for LabError {
    fn from(error: Fault) -> Self {
        Self::refused("policies", error)
    }
}

/// Measures everything. `heap` is the process's allocator.
///
/// # Errors
/// [`Refused`](LabError::Refused) if a scheme refuses an operation, and
/// [`WrongKey`](LabError::WrongKey) if it opens something else than was sealed.
pub fn reproduce(
    plan: &AbePlan,
    making: Making,
    heap: &dyn Heap,
    observer: &mut dyn Observer,
) -> Result<Report> {
    let published = PublishedAbe::read()?;
    let groups = groups::measure(plan, &published, observer);
    let trees_by_size = RandomTrees::generate(plan)?;
    let growths = SchemeGrowths {
        gpsw: attribute_growth::measure::<Gpsw06>(plan, &trees_by_size, observer)?,
        yct: attribute_growth::measure::<InsecureYct14>(plan, &trees_by_size, observer)?,
        fabeo_kp: attribute_growth::measure::<FabeoKp>(plan, &trees_by_size, observer)?,
        fabeo_cp: attribute_growth::measure::<FabeoCp>(plan, &trees_by_size, observer)?,
    };
    let memory = memory::measure(plan, &published, heap, observer)?;
    let overview = overview::experiment(&published, &growths);
    let highlights = summary::highlights(&overview);
    let experiments = vec![
        overview,
        groups,
        reference::gpsw(plan, &published, &growths),
        reference::yct(plan, &published, &growths),
        fabeo::experiment(plan, &published, &growths),
        sizes::experiment(&growths),
        memory,
    ];
    Ok(Report {
        slug: "abe".into(),
        title: "Attribute-based encryption, measured again".into(),
        lead: summary::lead(),
        highlights,
        experiments,
        sources: summary::sources(),
        ..blank_report(making)
    })
}
