//! The attributes that an authority issues keys for: any, or a closed list.

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_policy::Attribute;

use crate::AbeError;

/// Attributes that a closed universe may have, the bits of integers counted singly and in both values.
pub const MAX_UNIVERSE: usize = 4_096;

/// Bytes of the shortest attribute: kind, length, one character.
const MIN_ATTRIBUTE_LEN: usize = 6;

/// The attributes that an authority can be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Universe {
    /// Any: the scheme hashes their names.
    Open,
    /// The attributes of a list, fixed when the authority is set up.
    Closed(Listed),
}

impl Universe {
    /// A closed universe, in whatever order and however often its attributes are named.
    ///
    /// # Errors
    /// [`AbeError::NoAttributes`], or [`AbeError::TooLong`] beyond [`MAX_UNIVERSE`].
    pub fn closed(attributes: impl IntoIterator<Item = Attribute>) -> Result<Self, AbeError> {
        let mut list = BTreeSet::new();
        for attribute in attributes {
            list.insert(attribute);
            // A long list is not first collected and then refused.
            if list.len() > MAX_UNIVERSE {
                return Err(AbeError::TooLong { what: "a universe", limit: MAX_UNIVERSE });
            }
        }
        Listed::new(list).map(Self::Closed)
    }

    /// The list, for schemes that need one.
    ///
    /// # Errors
    /// [`AbeError::ClosedUniverseNeeded`] if there is none.
    pub fn listed(&self) -> Result<&Listed, AbeError> {
        match self {
            Self::Open => Err(AbeError::ClosedUniverseNeeded),
            Self::Closed(listed) => Ok(listed),
        }
    }

    /// Accepts an open universe alone, for schemes that need no list.
    pub(crate) const fn open(&self) -> Result<(), AbeError> {
        match self {
            Self::Open => Ok(()),
            Self::Closed(_) => Err(AbeError::OpenUniverseNeeded),
        }
    }

    /// The attributes of the list, if there is one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Attribute> {
        match self {
            Self::Open => [].iter(),
            Self::Closed(listed) => listed.0.iter(),
        }
    }
}

/// The attributes of a closed universe, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed(Vec<Attribute>);

#[expect(clippy::len_without_is_empty, reason = "there is at least one")]
impl Listed {
    fn new(list: BTreeSet<Attribute>) -> Result<Self, AbeError> {
        if list.is_empty() { Err(AbeError::NoAttributes) } else { Ok(Self(list.into_iter().collect())) }
    }

    /// Bytes that [`write`](Self::write) writes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        size_of::<u32>() + self.0.iter().map(|attribute| attribute.hash_input().len()).sum::<usize>()
    }

    /// Writes the attributes.
    pub fn write(&self, writer: &mut Writer) {
        writer.count(self.0.len());
        self.0.iter().for_each(|attribute| attribute.encode(writer));
    }

    /// Reads attributes that stand in their order.
    ///
    /// # Errors
    /// [`AbeError::Malformed`], or [`AbeError::NoAttributes`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, AbeError> {
        let mut list = BTreeSet::new();
        for _ in 0..reader.count(MAX_UNIVERSE, MIN_ATTRIBUTE_LEN)? {
            let attribute = Attribute::decode(reader)?;
            if list.last().is_some_and(|last| *last >= attribute) {
                return Err(AbeError::Malformed("attributes out of order"));
            }
            list.insert(attribute);
        }
        Self::new(list)
    }

    /// Number of attributes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The place of an attribute in the list.
    ///
    /// # Errors
    /// [`AbeError::OutsideUniverse`].
    pub fn place(&self, attribute: &Attribute) -> Result<usize, AbeError> {
        let outside = |_| AbeError::OutsideUniverse { attribute: attribute.to_string() };
        self.0.binary_search(attribute).map_err(outside)
    }
}
