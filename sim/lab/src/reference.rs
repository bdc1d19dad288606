//! Reads tables of published figures, which `reference/` holds as CSV.

use serde::de::DeserializeOwned;

use crate::{LabError, Result};

/// The rows of a table; `file` names it in the error.
pub(crate) fn rows<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<Vec<T>> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<Vec<T>, csv::Error>>()
        .map_err(|source| LabError::Reference { file, source })
}
