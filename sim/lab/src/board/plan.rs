//! The sizes and repetitions of the native bench shell.

/// Sizes and effort of the native measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPlan {
    /// Numbers of attributes, ascending, each from 1 to 30.
    pub attributes: Vec<u32>,
    /// Iterations of what takes microseconds.
    pub short: u32,
    /// Iterations of what takes milliseconds.
    pub long: u32,
}

impl Default for BoardPlan {
    /// The published parameters: 1 to 30 attributes.
    fn default() -> Self {
        Self { attributes: (1..=30).collect(), short: 1000, long: 10 }
    }
}

impl BoardPlan {
    /// Plan like the default, with ten times the iterations.
    #[must_use]
    pub fn full() -> Self {
        Self { short: 10_000, long: 100, ..Self::default() }
    }

    /// A few numbers of attributes and few iterations: shows that everything works.
    #[must_use]
    pub fn quick() -> Self {
        Self { attributes: vec![1, 5, 30], short: 10, long: 1 }
    }

    /// The lines that the native shell is given.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { attributes, short, long } = self;
        let mut lines = vec![
            format!("aes-cbc {short} 4"),
            format!("aes-ecb {short} 1000"),
            format!("aes-cbc {short} 1000"),
            format!("rsa {long} 100"),
            format!("sha {short} 256"),
            format!("aead {short} 256"),
            format!("ainq {long}"),
            format!("group {long}"),
            format!("pairing {long}"),
        ];
        for count in attributes {
            lines.extend(["gpsw06", "yct14"].map(|scheme| format!("abe {long} {scheme} all {count}")));
            lines.extend(
                ["fabeo-kp", "fabeo-cp"].map(|scheme| format!("abe {long} {scheme} encrypt {count}")),
            );
        }
        lines
    }
}
