//! Leaves of a policy: a plain attribute, or a comparison of an integer with a constant.

use core::fmt;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::{AttributeName, Fault, IntegerType};

/// Comparison operator of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
}

impl Operator {
    /// Operators with their spelling, `>=` before `>`: a parser takes the first that fits.
    pub(crate) const SPELT: [(Self, &'static str); 6] = [
        (Self::AtLeast, ">="),
        (Self::Above, ">"),
        (Self::AtMost, "<="),
        (Self::Below, "<"),
        (Self::Equal, "="),
        (Self::Unequal, "!="),
    ];

    /// Returns true if `left` compares so with `right`.
    #[must_use]
    pub const fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::AtLeast => left >= right,
            Self::Above => left > right,
            Self::AtMost => left <= right,
            Self::Below => left < right,
            Self::Equal => left == right,
            Self::Unequal => left != right,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::AtLeast => 0,
            Self::Above => 1,
            Self::AtMost => 2,
            Self::Below => 3,
            Self::Equal => 4,
            Self::Unequal => 5,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelt = Self::SPELT.iter().find(|(operator, _)| operator == self);
        f.write_str(spelt.map_or("", |(_, spelling)| spelling))
    }
}

/// A comparison of an integer attribute with a constant: `altitude >= 120`. Some values fulfil it and some do
/// not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{name} {operator} {}", self.kind.shown(self.constant))]
pub struct Comparison {
    name: AttributeName,
    kind: IntegerType,
    operator: Operator,
    constant: u64,
}

impl Comparison {
    /// Checks a comparison.
    ///
    /// # Errors
    /// [`Fault::OutOfRange`], [`Fault::AlwaysTrue`], [`Fault::AlwaysFalse`].
    pub fn new(
        name: AttributeName,
        kind: IntegerType,
        operator: Operator,
        constant: u64,
    ) -> Result<Self, Fault> {
        if constant > kind.max() {
            return Err(Fault::OutOfRange { kind });
        }
        match operator {
            Operator::AtLeast if constant == 0 => Err(Fault::AlwaysTrue),
            Operator::AtMost if constant == kind.max() => Err(Fault::AlwaysTrue),
            Operator::Above if constant == kind.max() => Err(Fault::AlwaysFalse),
            Operator::Below if constant == 0 => Err(Fault::AlwaysFalse),
            _ => Ok(Self { name, kind, operator, constant }),
        }
    }

    /// The integer.
    #[must_use]
    pub const fn name(&self) -> &AttributeName {
        &self.name
    }

    /// Kind of the integer.
    #[must_use]
    pub const fn kind(&self) -> IntegerType {
        self.kind
    }

    /// The operator.
    #[must_use]
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// The constant on its right.
    #[must_use]
    pub const fn constant(&self) -> u64 {
        self.constant
    }

    /// Returns true if a value fulfils it.
    #[must_use]
    pub const fn holds(&self, value: u64) -> bool {
        self.operator.holds(value, self.constant)
    }
}

/// A leaf of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum Condition {
    /// The holder has this attribute.
    Plain(AttributeName),
    /// An integer compares so.
    Compare(Comparison),
}

impl Condition {
    /// A plain attribute.
    ///
    /// # Errors
    /// [`Fault::NameLength`], [`Fault::NameCharacter`].
    pub fn plain(name: &str) -> Result<Self, Fault> {
        AttributeName::new(name).map(Self::Plain)
    }

    /// A comparison.
    ///
    /// # Errors
    /// The errors of [`Comparison::new`] and of the name.
    pub fn compare(name: &str, kind: IntegerType, operator: Operator, constant: u64) -> Result<Self, Fault> {
        Comparison::new(AttributeName::new(name)?, kind, operator, constant).map(Self::Compare)
    }

    /// The attribute's name.
    #[must_use]
    pub const fn name(&self) -> &AttributeName {
        match self {
            Self::Plain(name) | Self::Compare(Comparison { name, .. }) => name,
        }
    }

    /// The kind of integer it is about, if it is about one.
    #[must_use]
    pub const fn kind(&self) -> Option<IntegerType> {
        match self {
            Self::Plain(_) => None,
            Self::Compare(comparison) => Some(comparison.kind),
        }
    }

    /// 0 ‖ lp(name), or kind ‖ lp(name) ‖ operator ‖ constant.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Plain(name) => name.encode(writer.u8(0)),
            Self::Compare(Comparison { name, kind, operator, constant }) => {
                name.encode(writer.u8(1));
                kind.encode(writer);
                writer.u8(operator.code()).u64(*constant);
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let form = reader.u8()?;
        let name = AttributeName::decode(reader)?;
        match form {
            0 => Ok(Self::Plain(name)),
            1 => {
                let (kind, code, constant) = (IntegerType::decode(reader)?, reader.u8()?, reader.u64()?);
                let operator = Operator::SPELT.iter().find(|(operator, _)| operator.code() == code);
                let (operator, _) = operator.ok_or(Malformed("not an operator"))?;
                Comparison::new(name, kind, *operator, constant).map(Self::Compare)
            }
            _ => Err(Malformed("not a kind of leaf").into()),
        }
    }
}
