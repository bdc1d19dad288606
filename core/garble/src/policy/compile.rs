//! Compiles a policy to a circuit, in one pass over its text.

use super::words::{
    Parsed, ParserInput, expected, keyword, lexeme, next, number, place, symbol, whole, wrong,
};
use super::{MAX_DEPTH, MAX_POLICY_GATES, MAX_WIDTH, PolicyFault, PolicyTextError, Schema};
use crate::{Bit, Builder, Circuit, Number};

const OPERAND: &str = "a field, a number or `(`";
const TRUTH: &str = "something true or false";
const NUMBER: &str = "a number";

/// A compiled part of a policy, and its first byte.
struct CompiledPart {
    value: ExpressionValue,
    at: usize,
}

enum ExpressionValue {
    Truth(Bit),
    Number(Number),
}

/// Compiles a whole text.
pub(super) fn compile(text: &str, schema: &Schema) -> Result<Circuit, PolicyTextError> {
    let builder =
        Builder::new(schema.bits()).map_err(|_| PolicyTextError::whole(PolicyFault::SchemaTooLarge))?;
    let mut compiler = Compiler { schema, builder, depth: 0 };
    let holds = whole(text, |input| {
        let part = compiler.any(input)?;
        if next(input).is_some() {
            return expected(input, "an operator or the end");
        }
        Compiler::settled(&part)
    })?;
    compiler.builder.finish(&[holds]).map_err(|_| PolicyTextError::whole(PolicyFault::TooManyGates))
}

struct Compiler<'s> {
    schema: &'s Schema,
    builder: Builder,
    depth: usize,
}

impl Compiler<'_> {
    fn any(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let mut part = self.all(input)?;
        while keyword(input, "or")? {
            let other = self.all(input)?;
            let (a, b) = (truth(&part)?, truth(&other)?);
            part.value = ExpressionValue::Truth(self.builder.or(a, b));
        }
        Ok(part)
    }

    fn all(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let mut part = self.not(input)?;
        while keyword(input, "and")? {
            let other = self.not(input)?;
            let (a, b) = (truth(&part)?, truth(&other)?);
            part.value = ExpressionValue::Truth(self.builder.and(a, b));
        }
        Ok(part)
    }

    fn not(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let at = place(input);
        if !keyword(input, "not")? {
            return self.comparison(input);
        }
        let part = self.deeper(at, |this| this.not(input))?;
        Ok(CompiledPart { value: ExpressionValue::Truth(!truth(&part)?), at })
    }

    /// `a < b <= c` means both.
    fn comparison(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let first = self.sum(input)?;
        let (mut left, mut holds) = (first, None);
        while let Some(operator) = symbol(input, &["<=", ">=", "!=", "<", ">", "="])? {
            let right = self.sum(input)?;
            let bit = self.compare(operator, &left, &right)?;
            // §A3: what cannot be true, or cannot be false, is refused.
            if let Some(constant) = bit.known() {
                return wrong(left.at, PolicyFault::Constant(constant));
            }
            holds = Some(match holds {
                None => bit,
                Some(before) => self.builder.and(before, bit),
            });
            left = CompiledPart { at: left.at, ..right };
        }
        Ok(match holds {
            Some(holds) => CompiledPart { value: ExpressionValue::Truth(holds), at: left.at },
            None => left,
        })
    }

    fn compare(&mut self, operator: &str, left: &CompiledPart, right: &CompiledPart) -> Parsed<Bit> {
        let to = &mut self.builder;
        if let ("=" | "!=", ExpressionValue::Truth(a), ExpressionValue::Truth(b)) =
            (operator, &left.value, &right.value)
        {
            let differ = to.xor(*a, *b);
            return Ok(if operator == "=" { !differ } else { differ });
        }
        let (a, b) = (numeric(left)?, numeric(right)?);
        let bit = match operator {
            "<" => a.less_than(b, to),
            ">" => b.less_than(a, to),
            // a ≤ b unless b < a.
            "<=" => !b.less_than(a, to),
            ">=" => !a.less_than(b, to),
            "=" => a.equals(b, to),
            _ => !a.equals(b, to),
        };
        self.affordable(left.at)?;
        Ok(bit)
    }

    fn sum(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let mut part = self.product(input)?;
        while let Some(operator) = symbol(input, &["+", "-"])? {
            let other = self.product(input)?;
            let (a, b) = (numeric(&part)?, numeric(&other)?);
            // §A3: exact integers, which get as wide as they have to be.
            narrow(part.at, a.width().max(b.width()).saturating_add(2))?;
            let total =
                if operator == "+" { a.add(b, &mut self.builder) } else { a.subtract(b, &mut self.builder) };
            part.value = ExpressionValue::Number(total);
            self.affordable(part.at)?;
        }
        Ok(part)
    }

    fn product(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let mut part = self.power(input)?;
        while symbol(input, &["*"])?.is_some() {
            let other = self.power(input)?;
            let product = self.multiply(part.at, numeric(&part)?, numeric(&other)?)?;
            part.value = ExpressionValue::Number(product);
        }
        Ok(part)
    }

    fn multiply(&mut self, at: usize, a: &Number, b: &Number) -> Parsed<Number> {
        narrow(at, a.width().saturating_add(b.width()))?;
        // A square takes half the gates of a product.
        let product = if a == b { a.square(&mut self.builder) } else { a.multiply(b, &mut self.builder) };
        self.affordable(at)?;
        Ok(product)
    }

    fn power(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let base = self.unary(input)?;
        if symbol(input, &["^"])?.is_none() {
            return Ok(base);
        }
        let at = place(input);
        let Some(word) = lexeme(input)? else { return expected(input, "an exponent") };
        let exponent = number(word).or_else(|fault| wrong(at, fault))?;
        if !(1..=16).contains(&exponent) {
            return wrong(at, PolicyFault::Exponent(exponent));
        }
        let x = numeric(&base)?;
        // From the highest bit of the exponent down: square, and multiply where there is a 1.
        let mut power = x.clone();
        for bit in (0..exponent.ilog2()).rev() {
            power = self.multiply(base.at, &power, &power)?;
            if exponent >> bit & 1 == 1 {
                power = self.multiply(base.at, &power, x)?;
            }
        }
        Ok(CompiledPart { value: ExpressionValue::Number(power), at: base.at })
    }

    fn unary(&mut self, input: &mut ParserInput<'_>) -> Parsed<CompiledPart> {
        let at = place(input);
        if symbol(input, &["-"])?.is_some() {
            // A sign is weaker than an exponent: -x^2 is -(x^2).
            let part = self.deeper(at, |this| this.power(input))?;
            let of = numeric(&part)?;
            narrow(at, of.width().saturating_add(1))?;
            let negative = Number::constant(0).subtract(of, &mut self.builder);
            return Ok(CompiledPart { value: ExpressionValue::Number(negative), at });
        }
        if symbol(input, &["("])?.is_some() {
            let part = self.deeper(at, |this| this.any(input))?;
            return match symbol(input, &[")"])? {
                Some(_) => Ok(CompiledPart { at, ..part }),
                None => expected(input, "an operator or `)`"),
            };
        }
        match lexeme(input)? {
            Some(word) => self.operand(word, at),
            None => expected(input, OPERAND),
        }
    }

    fn operand(&self, word: &str, at: usize) -> Parsed<CompiledPart> {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value = number(word).or_else(|fault| wrong(at, fault))?;
            let value = i128::try_from(value).or_else(|_| wrong(at, PolicyFault::NumberTooLarge))?;
            return Ok(CompiledPart { value: ExpressionValue::Number(Number::constant(value)), at });
        }
        let Some(field) = self.schema.field(word) else {
            return wrong(at, PolicyFault::UnknownField(super::error::shown(word)));
        };
        let value = match field.kind() {
            super::FieldType::Bool => ExpressionValue::Truth(self.builder.input(field.bits().start)),
            _ => ExpressionValue::Number(field.number(&self.builder)),
        };
        Ok(CompiledPart { value, at })
    }

    /// Nesting is parsed on the thread's stack, so its depth is bounded.
    fn deeper<T>(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return wrong(at, PolicyFault::TooDeep);
        }
        self.depth = self.depth.saturating_add(1);
        let read = read(self);
        self.depth = self.depth.saturating_sub(1);
        read
    }

    fn affordable(&self, at: usize) -> Parsed<()> {
        if self.builder.gates() > MAX_POLICY_GATES { wrong(at, PolicyFault::TooManyGates) } else { Ok(()) }
    }

    /// The whole policy: a bit that is not constant.
    fn settled(part: &CompiledPart) -> Parsed<Bit> {
        let bit = truth(part)?;
        match bit.known() {
            Some(constant) => wrong(part.at, PolicyFault::Constant(constant)),
            None => Ok(bit),
        }
    }
}

fn truth(part: &CompiledPart) -> Parsed<Bit> {
    match part.value {
        ExpressionValue::Truth(bit) => Ok(bit),
        ExpressionValue::Number(_) => wrong(part.at, PolicyFault::WrongKind { wanted: TRUTH, found: NUMBER }),
    }
}

fn numeric(part: &CompiledPart) -> Parsed<&Number> {
    match &part.value {
        ExpressionValue::Number(number) => Ok(number),
        ExpressionValue::Truth(_) => wrong(part.at, PolicyFault::WrongKind { wanted: NUMBER, found: TRUTH }),
    }
}

fn narrow(at: usize, width: usize) -> Parsed<()> {
    if width > MAX_WIDTH { wrong(at, PolicyFault::TooWide(width)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString as _};

    use super::super::Policy;
    use super::*;

    fn schema() -> Schema {
        Schema::parse("x: i16, y: i16, n: u8, a: bool, b: bool").unwrap()
    }

    fn holds(text: &str, values: &[(&str, i128)]) -> bool {
        let mut all = alloc::vec![("x", 0), ("y", 0), ("n", 0), ("a", 0), ("b", 0)];
        for (name, value) in values {
            all.iter_mut().filter(|(of, _)| of == name).for_each(|(_, now)| *now = *value);
        }
        let policy = Policy::compile(text, &schema()).unwrap();
        policy.circuit().evaluate(&schema().encode(&all).unwrap()).unwrap() == [true]
    }

    fn refused(text: &str) -> String {
        Policy::compile(text, &schema()).unwrap_err().to_string()
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        assert!(holds("x + y * 2 = 7", &[("x", 1), ("y", 3)]));
        assert!(holds("(x + y) * 2 = 8", &[("x", 1), ("y", 3)]));
        assert!(holds("-x^2 = -9", &[("x", 3)]));
        assert!(holds("(-x)^2 = 9", &[("x", 3)]));
        assert!(holds("x - y - 1 = 0", &[("x", 3), ("y", 2)]));
        assert!(holds("x^3 = -27 and x^5 = -243", &[("x", -3)]));
        assert!(holds("a or b and not a", &[("a", 1)]));
        assert!(!holds("(a or b) and not a", &[("a", 1)]));
        assert!(holds("not x < 3 and a != b", &[("x", 3), ("b", 1)]));
        assert!(holds("3 <= x < 5 # a window\nAND n>=200", &[("x", 4), ("n", 200)]));
        assert!(!holds("3 <= x < 5", &[("x", 5)]));
    }

    #[test]
    fn nothing_overflows() {
        assert!(holds("x * x * y * y > 1_000_000_000_000_000_000", &[("x", -32768), ("y", 32767)]));
        assert!(holds("x + 1 > x", &[("x", 32767)]));
        assert!(holds("n - 255 <= 0 and 0 - n < 1", &[("n", 255)]));
    }

    #[test]
    fn faults_say_where_they_are() {
        assert_eq!(refused(""), "line 1, column 1: expected a field, a number or `(`, found the end");
        assert_eq!(refused("x <\n  z"), "line 2, column 3: no field is named `z`");
        assert_eq!(
            refused("x + y"),
            "line 1, column 1: something true or false is wanted here, and this is a number"
        );
        assert_eq!(
            refused("a + 1 = 2"),
            "line 1, column 1: a number is wanted here, and this is something true or false"
        );
        assert_eq!(refused("n > 255"), "line 1, column 1: this is always false, whatever the fields say");
        assert_eq!(refused("a or not a"), "line 1, column 1: this is always true, whatever the fields say");
        assert_eq!(refused("(x > 1"), "line 1, column 7: expected an operator or `)`, found the end");
        assert_eq!(refused("x > 1 y"), "line 1, column 7: expected an operator or the end, found `y`");
        assert_eq!(refused("x ^ 17 > 1"), "line 1, column 5: the exponent 17 is not from 1 to 16");
        assert_eq!(
            refused("(x^16)^2 > 1"),
            "line 1, column 1: this may need 512 bits; at most 256 are allowed"
        );
        assert_eq!(refused("x > 1e5"), "line 1, column 5: expected a number in decimal digits, found `1e5`");
        assert!(
            refused(&alloc::format!("x > {}", "9".repeat(40))).ends_with("a number of more than 127 bits")
        );
        assert!(refused(&alloc::format!("{}a", "not ".repeat(65))).ends_with("nested more than 64 deep"));
        assert!(refused(&"(".repeat(70)).ends_with("nested more than 64 deep"));
        assert!(refused(&" ".repeat(20_000)).ends_with("a text of more than 16384 bytes"));
        assert!(refused("x = §").ends_with("found `§`"));
    }
}
