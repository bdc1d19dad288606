//! Serde for schemas, attribute sets and access trees: as text, with the integers the text needs.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{AccessTree, AttributeSet, IntegerType, PolicyError, Schema};

impl Serialize for IntegerType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IntegerType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

type Integers = BTreeMap<String, IntegerType>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plain: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    integers: Integers,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyText {
    policy: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    integers: Integers,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttributesText {
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

impl TryFrom<SchemaText> for Schema {
    type Error = PolicyError;

    fn try_from(written: SchemaText) -> Result<Self, PolicyError> {
        let schema = schema_of(&written.integers)?;
        match &written.plain {
            Some(plain) => schema.with_plain(plain.iter().map(String::as_str)),
            None => Ok(schema),
        }
    }
}

impl From<&Schema> for SchemaText {
    fn from(schema: &Schema) -> Self {
        let plain = schema.plain().map(|plain| plain.map(|name| name.as_str().into()).collect());
        Self { plain, integers: integers(schema) }
    }
}

impl TryFrom<PolicyText> for AccessTree {
    type Error = PolicyError;

    fn try_from(written: PolicyText) -> Result<Self, PolicyError> {
        Self::parse(&written.policy, &schema_of(&written.integers)?)
    }
}

impl From<&AccessTree> for PolicyText {
    fn from(tree: &AccessTree) -> Self {
        Self { policy: tree.to_string(), integers: integers(&tree.schema()) }
    }
}

impl TryFrom<AttributesText> for AttributeSet {
    type Error = PolicyError;

    fn try_from(written: AttributesText) -> Result<Self, PolicyError> {
        Self::parse(&written.attributes, &schema_of(&written.integers)?)
    }
}

impl From<&AttributeSet> for AttributesText {
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
    Schema => SchemaText;
    AccessTree => PolicyText;
    AttributeSet => AttributesText;
}
