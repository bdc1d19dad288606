//! Sets of attributes, of a key or of a message.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::attribute::bit_of;
use crate::schema::in_order;
use crate::{Attribute, AttributeName, Condition, Fault, IntegerType, MAX_ATOMS, PolicyError, Schema, text};

/// First byte of the encoding.
const FORMAT: u8 = 1;
/// Byte before a plain attribute, and before an integer.
const PLAIN: u8 = 0;
const INTEGER: u8 = 1;

/// The value of an integer attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    kind: IntegerType,
    value: u64,
}

impl Value {
    /// Checks a value.
    ///
    /// # Errors
    /// [`Fault::OutOfRange`].
    pub const fn new(kind: IntegerType, value: u64) -> Result<Self, Fault> {
        if value <= kind.max() { Ok(Self { kind, value }) } else { Err(Fault::OutOfRange { kind }) }
    }

    /// Kind of the integer.
    #[must_use]
    pub const fn kind(self) -> IntegerType {
        self.kind
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.value
    }
}

/// A set of attributes: plain ones, and integers with a value. At most [`MAX_ATOMS`] atoms, each name once.
/// May be empty.
///
/// [`Display`](fmt::Display) prints text that parses to the same set, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttributeSet {
    entries: BTreeMap<AttributeName, Option<Value>>,
    atoms: usize,
}

impl AttributeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new(), atoms: 0 }
    }

    /// Parses a list such as `scout, sector:7, altitude = 150, valid-until = 2026-12-01`. Text without
    /// anything in it is the empty set.
    ///
    /// # Errors
    /// A [`PolicyError`] with its place, whatever is wrong.
    pub fn parse(list: &str, schema: &Schema) -> Result<Self, PolicyError> {
        text::attributes(list, schema)
    }

    /// Adds a plain attribute.
    ///
    /// # Errors
    /// [`Fault::Duplicate`], [`Fault::TooManyAtoms`], or the name's.
    pub fn insert_plain(&mut self, name: &str) -> Result<(), Fault> {
        self.insert(AttributeName::new(name)?, None)
    }

    /// Adds an integer with its value.
    ///
    /// # Errors
    /// [`Fault::OutOfRange`], [`Fault::Duplicate`], [`Fault::TooManyAtoms`], or the name's.
    pub fn insert_integer(&mut self, name: &str, kind: IntegerType, value: u64) -> Result<(), Fault> {
        self.insert(AttributeName::new(name)?, Some(Value::new(kind, value)?))
    }

    /// Adds an attribute.
    ///
    /// # Errors
    /// [`Fault::Duplicate`], [`Fault::TooManyAtoms`].
    pub fn insert(&mut self, name: AttributeName, value: Option<Value>) -> Result<(), Fault> {
        if self.entries.contains_key(&name) {
            return Err(Fault::Duplicate { name: name.as_str().into() });
        }
        let atoms = value.map_or(1, |value| usize::from(value.kind.bits())).saturating_add(self.atoms);
        if atoms > MAX_ATOMS {
            return Err(Fault::TooManyAtoms);
        }
        self.atoms = atoms;
        self.entries.insert(name, value);
        Ok(())
    }

    /// The attributes by name, integers with their value.
    pub fn iter(&self) -> impl Iterator<Item = (&AttributeName, Option<Value>)> {
        self.entries.iter().map(|(name, value)| (name, *value))
    }

    /// Atoms it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.atoms
    }

    /// Returns true if the set has no attributes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.atoms == 0
    }

    /// The atoms by name, an integer's bits from the highest.
    pub fn atoms(&self) -> impl Iterator<Item = Attribute> {
        self.entries.iter().flat_map(|(name, value)| {
            let plain = value.is_none().then(|| Attribute::Plain(name.clone()));
            let bits = value.map(|value| Attribute::bits_of(name, value.kind, value.value));
            plain.into_iter().chain(bits.into_iter().flatten())
        })
    }

    /// Returns true if the set has this atom.
    #[must_use]
    pub fn contains(&self, attribute: &Attribute) -> bool {
        match (self.entries.get(attribute.name()), attribute) {
            (Some(None), Attribute::Plain(_)) => true,
            (Some(Some(had)), Attribute::Bit { width, index, value, .. }) => {
                had.kind.bits() == *width && bit_of(had.value, *index) == *value
            }
            _ => false,
        }
    }

    /// Returns true if the set fulfils a leaf of a policy. An integer of another width fulfils nothing,
    /// whatever its value.
    #[must_use]
    pub fn fulfils(&self, condition: &Condition) -> bool {
        match (self.entries.get(condition.name()), condition) {
            (Some(None), Condition::Plain(_)) => true,
            (Some(Some(had)), Condition::Compare(comparison)) => {
                had.kind.bits() == comparison.kind().bits() && comparison.holds(had.value)
            }
            _ => false,
        }
    }

    /// Integers of the set, as a schema with which its text parses.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut schema = Schema::new();
        for (name, value) in self.iter() {
            if let Some(value) = value {
                // Each name is there once, and a set has fewer than a schema may.
                let _ = schema.declare_integer(name.clone(), value.kind);
            }
        }
        schema
    }

    /// The encoding: format ‖ count ‖ entries in byte order of their names, a plain one as lp(name) ‖ 0, an
    /// integer as lp(name) ‖ 1 ‖ kind ‖ value (eight bytes). A set has one encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(FORMAT).count(self.entries.len());
        for (name, value) in &self.entries {
            name.encode(&mut writer);
            match value {
                None => {
                    writer.u8(PLAIN);
                }
                Some(Value { kind, value }) => {
                    kind.encode(writer.u8(INTEGER));
                    writer.u64(*value);
                }
            }
        }
        writer.finish()
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`Fault::Malformed`], [`Fault::OutOfRange`], [`Fault::TooManyAtoms`].
    pub fn decode(bytes: &[u8]) -> Result<Self, PolicyError> {
        let (mut reader, mut set) = (Reader::new(bytes), Self::new());
        if reader.u8()? != FORMAT {
            return Err(Malformed("an attribute set of another format").into());
        }
        for _ in 0..reader.count(MAX_ATOMS, 6)? {
            let name = AttributeName::decode(&mut reader)?;
            in_order(set.entries.last_key_value().map(|(last, _)| last), &name)?;
            let value = match reader.u8()? {
                PLAIN => None,
                INTEGER => Some(Value::new(IntegerType::decode(&mut reader)?, reader.u64()?)?),
                _ => return Err(Malformed("neither plain nor an integer").into()),
            };
            set.insert(name, value)?;
        }
        reader.end()?;
        Ok(set)
    }
}

impl fmt::Display for AttributeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.entries.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { ", " })?;
            name.fmt(f)?;
            if let Some(Value { kind, value }) = value {
                write!(f, " = {}", kind.shown(*value))?;
            }
        }
        Ok(())
    }
}
