//! The published figures of attribute-based encryption.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::operation::{PublishedPlatform, ReferenceScheme, SchemeAlgorithm};
use crate::Result;
use crate::reference::rows;

macro_rules! reference {
    ($file:literal) => {
        ($file, include_str!(concat!("../../reference/abe/", $file)))
    };
}

/// Figures of the thesis, in seconds and bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublishedAbe {
    /// Figures by the operation's name: SoC and laptop.
    elements: BTreeMap<String, (f64, f64)>,
    schemes: BTreeMap<(ReferenceScheme, PublishedPlatform, usize), SchemeRow>,
    ram: BTreeMap<usize, RamRow>,
    pub(crate) flash: Vec<FlashRow>,
}

#[derive(Deserialize)]
struct ElementRow {
    op: String,
    /// Milliseconds.
    soc: f64,
    /// Milliseconds.
    laptop: f64,
}

/// Microseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct SchemeRow {
    atts: usize,
    setup: f64,
    enc: f64,
    keygen: f64,
    dec: f64,
}

/// Bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct RamRow {
    layers: usize,
    #[serde(rename = "yct-dec")]
    yct_decrypt: f64,
    #[serde(rename = "gpsw-dec")]
    gpsw_decrypt: f64,
    #[serde(rename = "yct-enc")]
    yct_encrypt: f64,
    #[serde(rename = "gpsw-enc")]
    gpsw_encrypt: f64,
}

/// A program's sections in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FlashRow {
    pub(crate) scheme: String,
    pub(crate) size: f64,
    pub(crate) text: f64,
    pub(crate) bss: f64,
    pub(crate) rodata: f64,
}

impl PublishedAbe {
    pub(crate) fn read() -> Result<Self> {
        let mut elements = BTreeMap::new();
        for (file, text) in [
            reference!("bn-smpl.csv"),
            reference!("bn-groupop.csv"),
            reference!("bn-groupexp.csv"),
            reference!("bn-pairing.csv"),
        ] {
            let rows = rows::<ElementRow>(file, text)?.into_iter();
            elements.extend(rows.map(|row| (row.op, (row.soc / 1e3, row.laptop / 1e3))));
        }
        let mut schemes = BTreeMap::new();
        for (scheme, host, (file, text)) in [
            (ReferenceScheme::Gpsw, PublishedPlatform::Laptop, reference!("gpsw06-laptop.csv")),
            (ReferenceScheme::Gpsw, PublishedPlatform::Soc, reference!("gpsw06-soc.csv")),
            (ReferenceScheme::Yct, PublishedPlatform::Laptop, reference!("yct14-laptop.csv")),
            (ReferenceScheme::Yct, PublishedPlatform::Soc, reference!("yct14-soc.csv")),
        ] {
            let rows = rows::<SchemeRow>(file, text)?.into_iter();
            schemes.extend(rows.map(|row| ((scheme, host, row.atts), row)));
        }
        let (ram, flash) = (reference!("ram.csv"), reference!("flash.csv"));
        let ram = rows::<RamRow>(ram.0, ram.1)?;
        Ok(Self {
            elements,
            schemes,
            ram: ram.into_iter().map(|row| (row.layers, row)).collect(),
            flash: rows(flash.0, flash.1)?,
        })
    }

    /// Seconds for one operation with an element of a group, by the name that the publication gives it.
    pub(crate) fn element(&self, host: PublishedPlatform, operation: &str) -> Option<f64> {
        let (soc, laptop) = self.elements.get(operation)?;
        Some(if host == PublishedPlatform::Soc { *soc } else { *laptop })
    }

    /// Seconds that an algorithm took with so many attributes.
    pub(crate) fn time(
        &self,
        scheme: ReferenceScheme,
        host: PublishedPlatform,
        operation: SchemeAlgorithm,
        attributes: usize,
    ) -> Option<f64> {
        let row = self.schemes.get(&(scheme, host, attributes))?;
        let microseconds = match operation {
            SchemeAlgorithm::Setup => row.setup,
            SchemeAlgorithm::Encrypt => row.enc,
            SchemeAlgorithm::KeyGen => row.keygen,
            SchemeAlgorithm::Decrypt => row.dec,
        };
        Some(microseconds / 1e6)
    }

    /// The largest number of attributes not above a bound.
    pub(crate) fn most_attributes(&self, bound: usize) -> Option<usize> {
        self.schemes.keys().map(|(_, _, attributes)| *attributes).filter(|count| *count <= bound).max()
    }

    /// Bytes of memory on the SoC with a tree of so many layers; for encryption and decryption.
    pub(crate) fn ram(
        &self,
        scheme: ReferenceScheme,
        operation: SchemeAlgorithm,
        layers: usize,
    ) -> Option<f64> {
        let row = self.ram.get(&layers)?;
        match (scheme, operation) {
            (ReferenceScheme::Gpsw, SchemeAlgorithm::Encrypt) => Some(row.gpsw_encrypt),
            (ReferenceScheme::Gpsw, SchemeAlgorithm::Decrypt) => Some(row.gpsw_decrypt),
            (ReferenceScheme::Yct, SchemeAlgorithm::Encrypt) => Some(row.yct_encrypt),
            (ReferenceScheme::Yct, SchemeAlgorithm::Decrypt) => Some(row.yct_decrypt),
            (_, SchemeAlgorithm::Setup | SchemeAlgorithm::KeyGen) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_is_there_in_seconds_and_bytes() {
        let published = PublishedAbe::read().unwrap();
        assert_eq!(published.elements.len(), 11);
        assert_eq!(published.element(PublishedPlatform::Laptop, "Pairing"), Some(0.006_412));
        assert_eq!(published.element(PublishedPlatform::Soc, "Sample from Fr"), Some(0.002_164));
        assert_eq!(published.schemes.len(), 120);
        let time = |scheme, host, operation| published.time(scheme, host, operation, 30);
        assert_eq!(
            time(ReferenceScheme::Gpsw, PublishedPlatform::Laptop, SchemeAlgorithm::Decrypt),
            Some(0.300_613)
        );
        assert_eq!(
            time(ReferenceScheme::Gpsw, PublishedPlatform::Soc, SchemeAlgorithm::Setup),
            Some(8.467_751)
        );
        assert_eq!(
            time(ReferenceScheme::Yct, PublishedPlatform::Laptop, SchemeAlgorithm::KeyGen),
            Some(0.000_791)
        );
        assert_eq!(published.most_attributes(29), Some(29));
        assert_eq!(published.most_attributes(1000), Some(30));
        assert_eq!(published.ram(ReferenceScheme::Gpsw, SchemeAlgorithm::Decrypt, 4), Some(315_224.0));
        assert_eq!(published.ram(ReferenceScheme::Gpsw, SchemeAlgorithm::Setup, 4), None);
        assert_eq!(published.flash.len(), 2);
    }
}
