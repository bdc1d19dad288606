//! Names of settings in configuration files.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KemSetting;

/// [`KemSetting`] with the names of its values.
#[derive(Serialize, Deserialize)]
#[serde(remote = "KemSetting")]
enum NamedSetting {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "ml-kem-768")]
    MlKem768,
    #[serde(rename = "ml-kem-1024")]
    MlKem1024,
}

impl Serialize for KemSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        NamedSetting::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for KemSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NamedSetting::deserialize(deserializer)
    }
}
