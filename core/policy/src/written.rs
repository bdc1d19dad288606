//! Schemas, attribute sets and access trees in configuration files: as text, with the integers the text needs.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{AccessTree, AttributeSet, Kind, PolicyError, Schema};

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

type Integers = BTreeMap<String, Kind>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSchema {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plain: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    integers: Integers,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTree {
    policy: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    integers: Integers,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSet {
    attributes: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    integers: Integers,
}

fn integers(schema: &Schema) -> Integers {
    schema.integers().map(|(name, kind)| (name.as_str().into(), kind)).collect()
}

fn schema_of(integers: &Integers) -> Result<Schema, PolicyError> {
    integers.iter().try_fold(Schema::new(), |schema, (name, &kind)| schema.with_integer(name, kind))
}

impl TryFrom<WrittenSchema> for Schema {
    type Error = PolicyError;

    fn try_from(written: WrittenSchema) -> Result<Self, PolicyError> {
        let schema = schema_of(&written.integers)?;
        match &written.plain {
            Some(plain) => schema.with_plain(plain.iter().map(String::as_str)),
            None => Ok(schema),
        }
    }
}

impl From<&Schema> for WrittenSchema {
    fn from(schema: &Schema) -> Self {
        let plain = schema.plain().map(|plain| plain.map(|name| name.as_str().into()).collect());
        Self { plain, integers: integers(schema) }
    }
}

impl TryFrom<WrittenTree> for AccessTree {
    type Error = PolicyError;

    fn try_from(written: WrittenTree) -> Result<Self, PolicyError> {
        Self::parse(&written.policy, &schema_of(&written.integers)?)
    }
}

impl From<&AccessTree> for WrittenTree {
    fn from(tree: &AccessTree) -> Self {
        Self { policy: tree.to_string(), integers: integers(&tree.schema()) }
    }
}

impl TryFrom<WrittenSet> for AttributeSet {
    type Error = PolicyError;

    fn try_from(written: WrittenSet) -> Result<Self, PolicyError> {
        Self::parse(&written.attributes, &schema_of(&written.integers)?)
    }
}

impl From<&AttributeSet> for WrittenSet {
    fn from(set: &AttributeSet) -> Self {
        Self { attributes: set.to_string(), integers: integers(&set.schema()) }
    }
}

macro_rules! as_written {
    ($($type:ty => $written:ty;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$written>::from(self).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$written>::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
            }
        }
    )*};
}

as_written! {
    Schema => WrittenSchema;
    AccessTree => WrittenTree;
    AttributeSet => WrittenSet;
}
