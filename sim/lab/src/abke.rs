//! The published evaluation of attribute-based key exchange beside ours.
//!
//! Source: Kolesnikov, Krawczyk, Lindell, Malozemoff, Rabin, *Attribute-based Key Exchange with General
//! Policies*, CCS 2016, eprint 2016/518: table 10.1.
//!
//! | experiment | published | ours |
//! |---|---|---|
//! | `exchange` | every step at 100,000 gates and 200 attributes; totals at 1,000 and 10 | the same, what is made beforehand apart |
//! | `batches` | one key at a time, and ten | 1, 10 and 100 |
//! | `gates`, `attributes` | – | how both sides grow with either |
//! | `link` | a link of 200 Mbps | bytes of each message, and what a run takes over such a link |
//! | `garbling` | garbling and evaluating 100,000 gates | AND gates per second, 10³ to 10⁶ |
//! | `geolocation` | about 20,000 gates | gates, attributes, both sides' computation |

mod batches;
mod exchange;
mod exchange_setup;
mod garbling;
mod geolocation;
mod growth;
mod link;
mod measured;
mod plan;
mod published;
mod step;
mod summary;

pub use self::plan::{AbkePlan, PolicySize};
use quiver_report::{Making, Observer, Report};

use self::published::PublishedAbke;
use crate::blank_report::blank_report;
use crate::{LabError, Result};

impl From<quiver_abke::Error> for LabError {
    fn from(error: quiver_abke::Error) -> Self {
        Self::refused("attribute-based key exchange", error)
    }
}

impl From<quiver_garble::Error> for LabError {
    fn from(error: quiver_garble::Error) -> Self {
        Self::refused("garbling", error)
    }
}

/// Measures everything.
///
/// # Errors
/// [`Refused`](LabError::Refused) if something is refused that should not be, and
/// [`WrongKey`](LabError::WrongKey) if the two sides of a run hold different keys.
pub fn reproduce(plan: &AbkePlan, making: Making, observer: &mut dyn Observer) -> Result<Report> {
    let published = PublishedAbke::read()?;
    let exchanges = exchange::measure(plan, observer)?;
    let fences = geolocation::measure(plan, observer)?;
    let experiments = vec![
        exchange::experiment(plan, &published, &exchanges),
        batches::experiment(plan, &published, observer)?,
        growth::gates(plan, &published, observer)?,
        growth::attributes(plan, &published, observer)?,
        link::experiment(plan, &exchanges, &fences),
        garbling::experiment(plan, &published, observer)?,
        geolocation::experiment(plan, &published, &fences),
    ];
    Ok(Report {
        slug: "abke".into(),
        title: "Attribute-based key exchange, measured again".into(),
        lead: summary::lead(),
        highlights: summary::highlights(&experiments),
        experiments,
        sources: summary::sources(),
        ..blank_report(making)
    })
}
