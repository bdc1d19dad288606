//! Attributes: the atoms of an attribute-based scheme.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::{AttributeName, Fault, IntegerType};

/// An atom: something that is had or not had, and that a scheme hashes or has a public key for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum Attribute {
    /// A plain attribute.
    Plain(AttributeName),
    /// One bit of an integer has one value: `altitude[7/16]=1`.
    ///
    /// The width is part of it, because bit 7 of an 8-bit integer must not pass for bit 7 of a 16-bit one, in
    /// which nothing would say that the upper bits are 0.
    #[non_exhaustive]
    #[display("{name}[{index}/{width}]={}", u8::from(*value))]
    Bit {
        /// The integer.
        name: AttributeName,
        /// Bits the integer has, 1 to 64.
        width: u8,
        /// Number of the bit, 0 for the lowest.
        index: u8,
        /// Value of the bit.
        value: bool,
    },
}

impl Attribute {
    /// Bytes of the longest encoding.
    pub const MAX_ENCODED_LEN: usize = 1 + 4 + AttributeName::MAX_LEN + 3;

    /// A plain attribute.
    ///
    /// # Errors
    /// [`Fault::NameLength`], [`Fault::NameCharacter`].
    pub fn plain(name: &str) -> Result<Self, Fault> {
        AttributeName::new(name).map(Self::Plain)
    }

    /// A bit of an integer of `width` bits.
    ///
    /// # Errors
    /// [`Fault::InvalidWidth`] if the width is not 1 to 64 or the integer has no such bit.
    pub fn bit(name: AttributeName, width: u8, index: u8, value: bool) -> Result<Self, Fault> {
        if width == 0 || width > 64 || index >= width {
            return Err(Fault::InvalidWidth);
        }
        Ok(Self::Bit { name, width, index, value })
    }

    /// All bits of an integer with this value, the highest first. Bits of `value` beyond the kind's are not
    /// looked at.
    pub fn bits_of(
        name: &AttributeName,
        kind: IntegerType,
        value: u64,
    ) -> impl Iterator<Item = Self> + use<> {
        let (name, width) = (name.clone(), kind.bits());
        (0..width).rev().map(move |index| {
            let value = bit_of(value, index);
            Self::Bit { name: name.clone(), width, index, value }
        })
    }

    /// Name of the attribute: for a bit, that of the integer.
    #[must_use]
    pub const fn name(&self) -> &AttributeName {
        match self {
            Self::Plain(name) | Self::Bit { name, .. } => name,
        }
    }

    /// The encoding of an attribute, which schemes hash: kind byte (1 plain, 2 bit) ‖ lp(name) ‖, for bits,
    /// width ‖ index ‖ value, one byte each. 6 to [`Self::MAX_ENCODED_LEN`] bytes; no atom's is the beginning
    /// of another's.
    #[must_use]
    pub fn hash_input(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::MAX_ENCODED_LEN);
        self.encode(&mut writer);
        writer.finish()
    }

    /// Writes the encoding.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Plain(name) => name.encode(writer.u8(1)),
            Self::Bit { name, width, index, value } => {
                name.encode(writer.u8(2));
                writer.u8(*width).u8(*index).u8(u8::from(*value));
            }
        }
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = reader.u8()?;
        let name = AttributeName::decode(reader)?;
        match kind {
            1 => Ok(Self::Plain(name)),
            2 => {
                let (width, index, value) = (reader.u8()?, reader.u8()?, reader.u8()?);
                if value > 1 {
                    return Err(Malformed("not the value of a bit"));
                }
                Self::bit(name, width, index, value == 1).map_err(|_| Malformed("not a bit of an integer"))
            }
            _ => Err(Malformed("not a kind of attribute")),
        }
    }
}

/// Returns true if a bit of `value`, 0 to 63, is 1.
pub(crate) const fn bit_of(value: u64, index: u8) -> bool {
    value.wrapping_shr(index as u32) & 1 == 1
}
