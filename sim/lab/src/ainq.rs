//! The published evaluation of AinQ beside ours, and how both strategies grow.
//!
//! Source: Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver: A Secure Certificateless Group Key
//! Distribution Protocol for Drones*, NordSec 2021, eprint 2021/1372, evaluation.
//!
//! | experiment | published | ours |
//! |---|---|---|
//! | `edge` | three operations of an edge drone | the same, and what a drone of Quiver does |
//! | `leader` | GenGroupKey and Re-Key on expiry for 1 and 2,000 drones | the same algorithms, `flat`, `tree` |
//! | `join` | Re-Key for existing × new members | the same |
//! | `growth` | – | both strategies up to 1,000,000 drones: leader CPU, bytes, airtime |

mod edge;
mod group;
mod growth;
mod join;
pub(crate) mod join_request;
mod leader;
mod plan;
mod published;
mod reference;
mod strategies;
mod summary;
pub(crate) mod swarm;

use quiver_report::{Observer, Publication, Report};

use crate::Result;
use crate::blank_report::blank_report;

pub use self::plan::AinqPlan;
use self::published::PublishedAinq;
pub use quiver_report::Making;

/// Measures everything.
///
/// # Errors
/// [`Protocol`](crate::LabError::Protocol) and [`WrongKey`](crate::LabError::WrongKey) if the protocol fails.
pub fn reproduce(plan: &AinqPlan, making: Making, observer: &mut dyn Observer) -> Result<Report> {
    let published = PublishedAinq::read()?;
    let experiments = vec![
        edge::measure(plan, &published, observer)?,
        leader::measure(plan, &published, observer)?,
        join::measure(plan, &published, observer)?,
        growth::measure(plan, observer)?,
    ];
    Ok(Report {
        slug: "ainq".into(),
        title: "Arrows in a Quiver, measured again".into(),
        lead: summary::lead(),
        highlights: summary::highlights(&experiments, plan),
        experiments,
        sources: vec![source()],
        ..blank_report(making)
    })
}

fn source() -> Publication {
    Publication {
        citation: "Frimpong, Rabbaninejad, Michalas: Arrows in a Quiver: A Secure Certificateless Group Key \
                   Distribution Protocol for Drones. NordSec 2021, eprint 2021/1372."
            .into(),
        link: "https://eprint.iacr.org/2021/1372".into(),
    }
}
