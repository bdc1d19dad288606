//! The schema of a deployment: its integer attributes and, if the list is closed, its plain ones.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::{Attribute, AttributeName, Fault, IntegerType, MAX_DECLARED, PolicyError};

/// First byte of the encoding.
const FORMAT: u8 = 1;

/// The integer attributes that exist, and the plain ones that may be named.
///
/// Policies and attribute sets are read against a schema. An open schema (the default) takes any plain name;
/// a closed one takes those listed, which catches a misspelt `scuot` that no drone would ever have.
///
/// In a configuration file (feature `serde`):
///
/// ```toml
/// plain = ["scout", "thermal"]        # leave it out to take any name
/// integers = { altitude = "16 bits", valid-until = "date" }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    integers: BTreeMap<AttributeName, IntegerType>,
    plain: Option<BTreeSet<AttributeName>>,
}

impl Schema {
    /// No integers, any plain name.
    #[must_use]
    pub const fn new() -> Self {
        Self { integers: BTreeMap::new(), plain: None }
    }

    /// Declares an integer as well.
    ///
    /// # Errors
    /// [`Fault::DeclaredTwice`] if the name is declared already, [`Fault::TooManyDeclared`], or the name's.
    pub fn with_integer(mut self, name: &str, kind: IntegerType) -> Result<Self, PolicyError> {
        self.declare_integer(AttributeName::new(name)?, kind)?;
        Ok(self)
    }

    /// Closes the list of plain attributes, or, if it is closed, adds to it.
    ///
    /// # Errors
    /// [`Fault::DeclaredTwice`] if a name is declared already, [`Fault::TooManyDeclared`], or a name's.
    pub fn with_plain<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, PolicyError> {
        self.plain.get_or_insert_default();
        for name in names {
            self.declare_plain(AttributeName::new(name)?)?;
        }
        Ok(self)
    }

    pub(crate) fn declare_integer(&mut self, name: AttributeName, kind: IntegerType) -> Result<(), Fault> {
        self.check_new(&name)?;
        self.integers.insert(name, kind);
        Ok(())
    }

    fn declare_plain(&mut self, name: AttributeName) -> Result<(), Fault> {
        self.check_new(&name)?;
        self.plain.get_or_insert_default().insert(name);
        Ok(())
    }

    fn check_new(&self, name: &AttributeName) -> Result<(), Fault> {
        let plain = self.plain.as_ref();
        if self.integers.contains_key(name) || plain.is_some_and(|plain| plain.contains(name)) {
            return Err(Fault::DeclaredTwice { name: name.as_str().into() });
        }
        if self.integers.len().saturating_add(plain.map_or(0, BTreeSet::len)) >= MAX_DECLARED {
            return Err(Fault::TooManyDeclared);
        }
        Ok(())
    }

    /// The integers, by name.
    pub fn integers(&self) -> impl Iterator<Item = (&AttributeName, IntegerType)> {
        self.integers.iter().map(|(name, kind)| (name, *kind))
    }

    /// The plain attributes by name, if the list is closed.
    #[must_use]
    pub fn plain(&self) -> Option<impl Iterator<Item = &AttributeName>> {
        self.plain.as_ref().map(BTreeSet::iter)
    }

    /// Every atom there is, if the list of plain attributes is closed: each plain attribute, and each bit of
    /// each integer as 0 and as 1. At most 128 for each name declared.
    #[must_use]
    pub fn universe(&self) -> Option<Vec<Attribute>> {
        let mut atoms: Vec<_> = self.plain.as_ref()?.iter().cloned().map(Attribute::Plain).collect();
        for (name, &kind) in &self.integers {
            atoms.extend(Attribute::bits_of(name, kind, 0).chain(Attribute::bits_of(name, kind, u64::MAX)));
        }
        Some(atoms)
    }

    /// The kind of an integer.
    ///
    /// # Errors
    /// [`Fault::NotAnInteger`].
    pub fn kind_of(&self, name: &AttributeName) -> Result<IntegerType, Fault> {
        self.integers.get(name).copied().ok_or_else(|| {
            let nearest = nearest(name, self.integers.keys());
            Fault::NotAnInteger { name: name.as_str().into(), nearest }
        })
    }

    /// Checks that a plain attribute of this name may be used.
    ///
    /// # Errors
    /// [`Fault::NeedsValue`] if it is an integer, [`Fault::UnknownAttribute`] if the list is closed without
    /// it.
    pub fn check_plain(&self, name: &AttributeName) -> Result<(), Fault> {
        if let Some(&kind) = self.integers.get(name) {
            return Err(Fault::NeedsValue { name: name.as_str().into(), kind });
        }
        match &self.plain {
            Some(plain) if !plain.contains(name) => {
                let nearest = nearest(name, plain.iter().chain(self.integers.keys()));
                Err(Fault::UnknownAttribute { name: name.as_str().into(), nearest })
            }
            _ => Ok(()),
        }
    }

    /// The encoding: format ‖ count ‖ (lp(name) ‖ kind)* ‖ closed ‖ count ‖ lp(name)*, names in byte order.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(FORMAT).count(self.integers.len());
        for (name, kind) in &self.integers {
            name.encode(&mut writer);
            kind.encode(&mut writer);
        }
        writer.u8(u8::from(self.plain.is_some()));
        if let Some(plain) = &self.plain {
            writer.count(plain.len());
            plain.iter().for_each(|name| name.encode(&mut writer));
        }
        writer.finish()
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`Fault::Malformed`], [`Fault::DeclaredTwice`], [`Fault::TooManyDeclared`].
    pub fn decode(bytes: &[u8]) -> Result<Self, PolicyError> {
        let (mut reader, mut schema) = (Reader::new(bytes), Self::new());
        if reader.u8()? != FORMAT {
            return Err(Malformed("a schema of another format").into());
        }
        for _ in 0..reader.count(MAX_DECLARED, 7)? {
            let name = AttributeName::decode(&mut reader)?;
            in_order(schema.integers.last_key_value().map(|(last, _)| last), &name)?;
            schema.declare_integer(name, IntegerType::decode(&mut reader)?)?;
        }
        match reader.u8()? {
            0 => {}
            1 => {
                schema.plain = Some(BTreeSet::new());
                for _ in 0..reader.count(MAX_DECLARED, 5)? {
                    let name = AttributeName::decode(&mut reader)?;
                    in_order(schema.plain.as_ref().and_then(BTreeSet::last), &name)?;
                    schema.declare_plain(name)?;
                }
            }
            _ => return Err(Malformed("neither open nor closed").into()),
        }
        reader.end()?;
        Ok(schema)
    }
}

/// Checks that names come in byte order, each once.
pub(crate) fn in_order(last: Option<&AttributeName>, next: &AttributeName) -> Result<(), Malformed> {
    if last.is_none_or(|last| last < next) { Ok(()) } else { Err(Malformed("names out of order")) }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, kind) in &self.integers {
            write!(f, "{name}: {kind}; ")?;
        }
        let Some(plain) = &self.plain else { return f.write_str("any plain attribute") };
        f.write_str("plain attributes:")?;
        for (number, name) in plain.iter().enumerate() {
            write!(f, "{} {name}", if number == 0 { "" } else { "," })?;
        }
        if plain.is_empty() { f.write_str(" none") } else { Ok(()) }
    }
}

/// The name that takes the fewest single-character changes to become `name`, if a third of its characters
/// suffice.
fn nearest<'a>(name: &AttributeName, known: impl Iterator<Item = &'a AttributeName>) -> Option<Box<str>> {
    let wrong: Vec<char> = name.as_str().chars().collect();
    let distances = known.map(|known| (changes(&wrong, known.as_str()), known));
    let (distance, nearest) = distances.min()?;
    (distance.saturating_mul(3) <= wrong.len().max(3)).then(|| nearest.as_str().into())
}

/// Number of characters that must be inserted, left out, replaced, or swapped with their neighbour: the
/// optimal string alignment distance, two rows of its table at a time.
fn changes(from: &[char], to: &str) -> usize {
    let cell = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX);
    let (mut above, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=from.len()).collect());
    let mut previous = None;
    for c in to.chars() {
        let mut next = vec![cell(&row, 0).saturating_add(1)];
        let mut left = None;
        for (column, &known) in from.iter().enumerate() {
            let replaced = cell(&row, column).saturating_add(usize::from(known != c));
            let one = cell(&row, column.saturating_add(1)).min(cell(&next, column)).saturating_add(1);
            let swapped = match (left, column.checked_sub(1)) {
                (Some(left), Some(column)) if left == c && previous == Some(known) => {
                    cell(&above, column).saturating_add(1)
                }
                _ => usize::MAX,
            };
            next.push(replaced.min(one).min(swapped));
            left = Some(known);
        }
        above = core::mem::replace(&mut row, next);
        previous = Some(c);
    }
    cell(&row, from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_count_single_characters() {
        for (from, to, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("scuot", "scout", 1),
            ("radar", "lidar", 2),
            ("a", "a", 0),
        ] {
            assert_eq!(changes(&from.chars().collect::<Vec<_>>(), to), distance, "{from} {to}");
        }
    }
}
