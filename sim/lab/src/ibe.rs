//! The published benchmarks of threshold identity-based encryption beside ours.
//!
//! Source: Fairblock, *DistributedIBE*, a library in Go, its benchmarks: Boneh-Franklin encryption on
//! BLS12-381, of which `quiver-ibe` reads and writes the same ciphertexts.
//!
//! | experiment | published | ours |
//! |---|---|---|
//! | `end-to-end` | dealing, encrypting, extracting, aggregating, decrypting for 4 to 128 validators | the same |
//! | `message-size` | end to end, encryption, decryption of 8 bytes to 1 MB | the same, as age files |
//! | `messages` | encrypting and decrypting so many messages, in parallel as well | the same, and with a kept recipient |
//! | `aggregate` | extracting and aggregating, aggregating 4 to 1,024 shares | the same, out of memory and out of bytes |
//! | `vss` | making and verifying shares with Feldman's commitments | the same, and verified at once |
//! | `kzg` | making and verifying shares with KZG's commitments | the same with ark-poly-commit, and verified at once |
//!
//! The KZG setup is insecure (`kzg` says why) and exists in this experiment only.

mod aggregation;
mod comparison;
mod dealers;
mod files;
mod kzg;
mod messages;
mod plan;
mod published;
mod quorum;
mod summary;

pub use self::plan::IbePlan;
use quiver_report::{Making, Observer, Report};

use self::published::PublishedIbe;
use crate::blank_report::blank_report;
use crate::{LabError, Result};

impl From<quiver_ibe::Error> for LabError {
    fn from(error: quiver_ibe::Error) -> Self {
        Self::refused("identity-based encryption", error)
    }
}

impl From<quiver_age::Error> for LabError {
    fn from(error: quiver_age::Error) -> Self {
        Self::refused("age files", error)
    }
}

/// Measures everything.
///
/// # Errors
/// [`Refused`](LabError::Refused) and [`Kzg`](LabError::Kzg) if something is refused that should not be, and
/// [`WrongKey`](LabError::WrongKey) if what was decrypted is not what was encrypted.
pub fn reproduce(plan: &IbePlan, making: Making, observer: &mut dyn Observer) -> Result<Report> {
    let published = PublishedIbe::read()?;
    let experiments = vec![
        aggregation::end_to_end(plan, &published, observer)?,
        messages::sizes(plan, &published, observer)?,
        messages::numbers(plan, &published, observer)?,
        aggregation::aggregate(plan, &published, observer)?,
        dealers::feldman(plan, &published, observer)?,
        dealers::kzg(plan, &published, observer)?,
    ];
    Ok(Report {
        slug: "ibe".into(),
        title: "Threshold identity-based encryption, measured again".into(),
        lead: summary::lead(),
        highlights: summary::highlights(&experiments),
        experiments,
        sources: summary::sources(),
        ..blank_report(making)
    })
}
