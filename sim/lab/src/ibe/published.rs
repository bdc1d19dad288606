//! The published figures of threshold identity-based encryption.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::reference::rows;
use crate::{LabError, Result};

/// Measured stages, of which the files have figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PublishedStage {
    EndToEnd,
    EndToEndBytes,
    EncryptBytes,
    DecryptBytes,
    ExtractAndAggregate,
    Encrypt,
    Decrypt,
    DecryptParallel,
    Aggregate,
    KzgVerify,
    VssVerify,
    KzgGenerate,
    VssGenerate,
}

impl PublishedStage {
    /// Finds a stage by its name in `message_size.csv`.
    fn of_sizes(name: &str) -> Option<Self> {
        Some(match name {
            "end_to_end" => Self::EndToEndBytes,
            "encrypt" => Self::EncryptBytes,
            "decrypt" => Self::DecryptBytes,
            _ => return None,
        })
    }

    /// Finds a stage by its name in `stages.csv`.
    fn of_stages(name: &str) -> Option<Self> {
        Some(match name {
            "extract_and_aggregate" => Self::ExtractAndAggregate,
            "encrypt" => Self::Encrypt,
            "decrypt" => Self::Decrypt,
            "decrypt_parallel" => Self::DecryptParallel,
            "aggregate" => Self::Aggregate,
            "kzg_verify" => Self::KzgVerify,
            "vss_verify" => Self::VssVerify,
            "kzg_generate" => Self::KzgGenerate,
            "vss_generate" => Self::VssGenerate,
            _ => return None,
        })
    }
}

/// Measurements of the library's authors, in seconds, by stage and by validators, messages or bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedIbe(BTreeMap<(PublishedStage, u32), f64>);

#[derive(Deserialize)]
struct EndToEndRow {
    validators: u32,
    ns: f64,
}

#[derive(Deserialize)]
struct SizeRow {
    stage: String,
    bytes: u32,
    ns: f64,
}

#[derive(Deserialize)]
struct StageRow {
    stage: String,
    value: u32,
    ns: f64,
}

impl PublishedIbe {
    pub(super) fn read() -> Result<Self> {
        let (all, sizes, stages) = ("end_to_end.csv", "message_size.csv", "stages.csv");
        let mut figures = BTreeMap::new();
        for row in rows::<EndToEndRow>(all, include_str!("../../reference/ibe/end_to_end.csv"))? {
            figures.insert((PublishedStage::EndToEnd, row.validators), row.ns / 1e9);
        }
        for row in rows::<SizeRow>(sizes, include_str!("../../reference/ibe/message_size.csv"))? {
            let stage = PublishedStage::of_sizes(&row.stage).ok_or(LabError::UnknownFigure(sizes))?;
            figures.insert((stage, row.bytes), row.ns / 1e9);
        }
        for row in rows::<StageRow>(stages, include_str!("../../reference/ibe/stages.csv"))? {
            let stage = PublishedStage::of_stages(&row.stage).ok_or(LabError::UnknownFigure(stages))?;
            figures.insert((stage, row.value), row.ns / 1e9);
        }
        Ok(Self(figures))
    }

    /// Seconds that a stage took.
    pub(super) fn figure(&self, stage: PublishedStage, parameter: u32) -> Option<f64> {
        self.0.get(&(stage, parameter)).copied()
    }

    /// The parameters that a stage was measured with, up to a bound, ascending.
    pub(super) fn parameters(&self, stage: PublishedStage, bound: u32) -> Vec<u32> {
        self.0.range((stage, 0)..=(stage, bound)).map(|((_, parameter), _)| *parameter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_is_there_in_seconds() {
        let published = PublishedIbe::read().unwrap();
        assert_eq!(published.0.len(), 6 + 24 + 49);
        assert_eq!(published.figure(PublishedStage::EndToEnd, 128), Some(0.290_355_378));
        assert_eq!(published.figure(PublishedStage::EncryptBytes, 1 << 20), Some(0.001_369_466));
        assert_eq!(published.figure(PublishedStage::Encrypt, 1), Some(0.001_574_796));
        assert_eq!(published.figure(PublishedStage::VssVerify, 128), Some(1.039_926_768));
        assert_eq!(published.figure(PublishedStage::VssVerify, 5), None);
        assert_eq!(published.parameters(PublishedStage::Aggregate, 16), [4, 8, 16]);
        assert_eq!(published.parameters(PublishedStage::DecryptParallel, 1024).len(), 5);
    }
}
