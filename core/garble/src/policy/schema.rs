//! The schema of certified fields: names, types and bits.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::words::{self, Parsed, ParserInput, expected, lexeme, next, place, symbol, wrong};
use super::{MAX_BITS, MAX_FIELDS, PolicyFault, PolicyTextError};
use crate::{Builder, Number};

/// Kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, derive_more::Display)]
pub enum FieldType {
    /// True or false: one bit.
    #[display("bool")]
    Bool,
    /// An integer from 0 to 2^bits − 1.
    #[display("u{_0}")]
    Unsigned(u8),
    /// An integer from −2^(bits−1) to 2^(bits−1) − 1, in two's complement.
    #[display("i{_0}")]
    Signed(u8),
}

impl FieldType {
    /// Reads `bool`, `u8`, `i64`, …
    ///
    /// # Errors
    /// [`PolicyFault::Kind`].
    pub fn parse(text: &str) -> Result<Self, PolicyFault> {
        let wrong = || PolicyFault::Kind(super::error::shown(text));
        let bits = |digits: &str| {
            let canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|bits| canonical && (1..=64).contains(bits)).ok_or_else(wrong)
        };
        match (text, text.split_at_checked(1)) {
            ("bool", _) => Ok(Self::Bool),
            (_, Some(("u", digits))) => Ok(Self::Unsigned(bits(digits)?)),
            (_, Some(("i", digits))) => Ok(Self::Signed(bits(digits)?)),
            _ => Err(wrong()),
        }
    }

    /// Number of bits.
    pub fn bits(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Unsigned(bits) | Self::Signed(bits) => usize::from(bits),
        }
    }

    /// Returns true if a field of this kind can have a value. A `bool` has 0 and 1.
    pub fn fits(self, value: i128) -> bool {
        match self {
            Self::Bool => (0..=1).contains(&value),
            Self::Unsigned(bits) => value >= 0 && value >> bits == 0,
            // The rest above the lower bits is nothing but the sign.
            Self::Signed(bits) => matches!(value >> bits.saturating_sub(1), 0 | -1),
        }
    }
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaField {
    name: Box<str>,
    kind: FieldType,
    /// Bits of the fields before it.
    start: usize,
}

impl SchemaField {
    /// Name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of the field.
    pub fn kind(&self) -> FieldType {
        self.kind
    }

    /// The bits of it among those of all fields, lowest first.
    pub fn bits(&self) -> core::ops::Range<usize> {
        self.start..self.start.saturating_add(self.kind.bits())
    }

    /// The field as a number in a circuit whose inputs are all fields.
    pub(super) fn number(&self, builder: &Builder) -> Number {
        let bits = self.bits().map(|at| builder.input(at)).collect();
        Number::new(bits, matches!(self.kind, FieldType::Signed(_)))
    }
}

/// The fields of a credential, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<SchemaField>,
}

impl Schema {
    /// A schema without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `x: i64, y: i64, medic: bool`, with commas or lines between fields.
    ///
    /// # Errors
    /// [`PolicyTextError`] with line, column and mistake.
    pub fn parse(text: &str) -> Result<Self, PolicyTextError> {
        words::whole(text, |input| {
            let mut schema = Self::new();
            while next(input).is_some() {
                schema = field(input, schema)?;
                // A comma may end the last field too; lines need none.
                symbol(input, &[","])?;
            }
            Ok(schema)
        })
    }

    /// The same with one more field.
    ///
    /// # Errors
    /// [`PolicyFault::Name`], [`PolicyFault::Keyword`], [`PolicyFault::FieldTwice`], [`PolicyFault::SchemaTooLarge`].
    pub fn with(mut self, name: &str, kind: FieldType) -> Result<Self, PolicyFault> {
        words::name(name)?;
        if self.field(name).is_some() {
            return Err(PolicyFault::FieldTwice(name.into()));
        }
        let start = self.bits();
        if self.fields.len() >= MAX_FIELDS || start.saturating_add(kind.bits()) > MAX_BITS {
            return Err(PolicyFault::SchemaTooLarge);
        }
        self.fields.push(SchemaField { name: name.into(), kind, start });
        Ok(self)
    }

    /// The fields in order.
    pub fn fields(&self) -> &[SchemaField] {
        &self.fields
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&SchemaField> {
        self.fields.iter().find(|field| *field.name == *name)
    }

    /// Bits of all fields together: the attributes that are certified.
    pub fn bits(&self) -> usize {
        self.fields.last().map_or(0, |last| last.bits().end)
    }

    /// The bits of a value for each field.
    ///
    /// # Errors
    /// [`PolicyTextError`] if a value does not fit, a field has none or two, or a name is no field's.
    pub fn encode(&self, values: &[(&str, i128)]) -> Result<Vec<bool>, PolicyTextError> {
        for (at, (name, _)) in values.iter().enumerate() {
            if self.field(name).is_none() {
                return Err(PolicyTextError::whole(PolicyFault::UnknownField(super::error::shown(name))));
            }
            if values.iter().skip(at.saturating_add(1)).any(|(other, _)| other == name) {
                return Err(PolicyTextError::whole(PolicyFault::FieldTwice((*name).into())));
            }
        }
        let mut bits = Vec::with_capacity(self.bits());
        for SchemaField { name, kind, .. } in &self.fields {
            let Some(&(_, value)) = values.iter().find(|(given, _)| *given == &**name) else {
                return Err(PolicyTextError::whole(PolicyFault::NoValue(name.clone())));
            };
            if !kind.fits(value) {
                return Err(PolicyTextError::whole(PolicyFault::Value {
                    value,
                    field: name.clone(),
                    kind: *kind,
                }));
            }
            bits.extend((0..kind.bits()).map(|at| value >> at & 1 == 1));
        }
        Ok(bits)
    }

    /// The schema as [`parse`](Self::parse) reads it; equal schemas have equal texts.
    pub fn to_text(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|field| format!("{}: {}", field.name, field.kind)).collect();
        fields.join(", ")
    }
}

fn field(input: &mut ParserInput<'_>, schema: Schema) -> Parsed<Schema> {
    let at = place(input);
    let Some(name) = lexeme(input)? else { return expected(input, "the name of a field") };
    if symbol(input, &[":"])?.is_none() {
        return expected(input, "`:` and a kind");
    }
    let kind_at = place(input);
    let Some(kind) = lexeme(input)? else { return expected(input, "`bool`, `u8`, `i64` or the like") };
    let kind = FieldType::parse(kind).or_else(|fault| wrong(kind_at, fault))?;
    schema.with(name, kind).or_else(|fault| wrong(at, fault))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn schema_reads_back_what_it_writes() {
        let schema = Schema::parse("x: i64, y: i64\ntime: u40 # seconds\nmedic: bool,").unwrap();
        assert_eq!(schema.bits(), 64 + 64 + 40 + 1);
        assert_eq!(schema.to_text(), "x: i64, y: i64, time: u40, medic: bool");
        assert_eq!(Schema::parse(&schema.to_text()).unwrap(), schema);
    }

    #[test]
    fn values_at_the_edges_fit_and_those_beyond_do_not() {
        for (kind, low, high) in [
            (FieldType::Bool, 0, 1),
            (FieldType::Unsigned(1), 0, 1),
            (FieldType::Unsigned(64), 0, (1 << 64) - 1),
            (FieldType::Signed(1), -1, 0),
            (FieldType::Signed(8), -128, 127),
            (FieldType::Signed(64), -(1 << 63), (1 << 63) - 1),
        ] {
            assert!(
                kind.fits(low) && kind.fits(high) && !kind.fits(low - 1) && !kind.fits(high + 1),
                "{kind}"
            );
        }
    }

    #[test]
    fn encoding_wants_one_value_for_each_field() {
        let schema = Schema::parse("a: u2, b: i2").unwrap();
        assert_eq!(schema.encode(&[("b", -1), ("a", 1)]).unwrap(), [true, false, true, true]);
        let refused = |values: &[(&str, i128)]| schema.encode(values).unwrap_err().fault.to_string();
        assert_eq!(refused(&[("a", 1)]), "field `b` has no value");
        assert_eq!(refused(&[("a", 4), ("b", 0)]), "4 does not fit `a`, which is u2");
        assert_eq!(refused(&[("a", 1), ("a", 1), ("b", 0)]), "field `a` is there twice");
        assert_eq!(refused(&[("a", 1), ("b", 0), ("c", 0)]), "no field is named `c`");
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let refused = |text| Schema::parse(text).unwrap_err().to_string();
        assert_eq!(refused("x i64"), "line 1, column 3: expected `:` and a kind, found `i64`");
        assert_eq!(
            refused("x: i65"),
            "line 1, column 4: `i65` is no kind of field: `bool`, `u1` to `u64`, `i1` to `i64`"
        );
        assert_eq!(refused("x: u08").split(": ").nth(1).unwrap(), "`u08` is no kind of field");
        assert_eq!(refused("x: u8,\nx: u8"), "line 2, column 1: field `x` is there twice");
        assert_eq!(refused("or: u8"), "line 1, column 1: `or` is a word of the language and names no field");
        assert_eq!(refused("7: u8").split(": ").nth(1).unwrap(), "`7` is no name");
        assert_eq!(
            refused("x: "),
            "line 1, column 4: expected `bool`, `u8`, `i64` or the like, found the end"
        );
        let many: String = (0..65).map(|at| format!("f{at}: u64\n")).collect();
        assert_eq!(refused(&many), "line 65, column 1: more than 256 fields or 4096 bits");
    }
}
