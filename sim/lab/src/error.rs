//! Errors of experiments and their reports.

/// An error of an experiment or its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The protocol refused an operation of the experiment.
    #[error("{what}: {source}")]
    Protocol {
        /// The operation.
        what: &'static str,
        /// Reason why it was refused.
        source: quiver_ainq::Error,
    },
    /// The subject of the experiment refused an operation. The experiments turn its errors into this one.
    #[error("{subject}: {source}")]
    Refused {
        /// The subject: a kind of encryption, policies, files.
        subject: &'static str,
        /// Reason why it was refused.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// KZG commitments could not be made or checked.
    #[error("KZG commitments: {0}")]
    Kzg(ark_poly_commit::Error),
    /// Shares that are right were refused, so that the times mean nothing.
    #[error("{0}: shares that are right were refused")]
    RefusedShare(&'static str),
    /// A scheme cannot take part in a comparison.
    #[error(transparent)]
    Contender(#[from] quiver_contenders::ContenderError),
    /// MLS refused an operation of the experiment.
    #[error("MLS: {0}")]
    Mls(#[from] quiver_mls::Error),
    /// The two sides did not arrive at one key, so that the times mean nothing.
    #[error("{0}: the two sides' keys differ")]
    WrongKey(&'static str),
    /// A property that must hold in a comparison did not.
    #[error("an invariant did not hold: {0}")]
    Broken(String),
    /// A table of published figures cannot be read.
    #[error("published figures, {file}: {source}")]
    Reference {
        /// The table.
        file: &'static str,
        /// The error.
        source: csv::Error,
    },
    /// A table of published figures has one of an unknown stage.
    #[error("published figures, {0}: unknown stage")]
    UnknownFigure(&'static str),
    /// A report cannot be drawn or written.
    #[error(transparent)]
    Report(#[from] quiver_report::ReportError),
    /// The command line asks for something that does not go together or does not exist.
    #[error("{0}")]
    Usage(String),
}

impl LabError {
    /// [`LabError::Refused`] for an error of this subject.
    pub(crate) fn refused(
        subject: &'static str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Refused { subject, source: Box::new(source) }
    }
}

/// Result of an experiment.
pub type Result<T, E = LabError> = std::result::Result<T, E>;
