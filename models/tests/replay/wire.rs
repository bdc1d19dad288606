//! Reads encoded messages, and changes one field of one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use quiver_ainq::Deployment;
use quiver_message::{Message, MessageError};

use crate::suite::Overheard as S;
use crate::table::{MessageRow, Table};

/// The message in these bytes, which name their deployment. It is remembered, because tests read the same ones
/// hundreds of times, and to decode a point takes a square root.
pub(crate) fn decode(deployment: &Deployment<S>, bytes: &[u8]) -> Result<Arc<Message<S>>, MessageError> {
    static DECODED: Mutex<BTreeMap<Vec<u8>, Arc<Message<S>>>> = Mutex::new(BTreeMap::new());
    let decoded = || DECODED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = decoded().get(bytes) {
        return Ok(Arc::clone(known));
    }
    let message = Arc::new(Message::decode(deployment, bytes)?);
    decoded().insert(bytes.to_vec(), Arc::clone(&message));
    Ok(message)
}

/// A field as it stands in the bytes: number, kind and where its value is.
struct Field {
    number: u64,
    kind: u64,
    value: Range<usize>,
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

/// The fields of a message in these bytes; `None` if it is none.
fn fields(bytes: &[u8], within: Range<usize>) -> Option<Vec<Field>> {
    let (mut at, mut found) = (within.start, Vec::new());
    while at < within.end {
        let key = varint(bytes, &mut at)?;
        let begun = at;
        let value = match key & 7 {
            0 => {
                varint(bytes, &mut at)?;
                begun..at
            }
            1 => begun..begun + 8,
            2 => {
                let length = usize::try_from(varint(bytes, &mut at)?).ok()?;
                at..at + length
            }
            _ => return None,
        };
        at = value.end;
        found.push(Field { number: key >> 3, kind: key & 7, value });
    }
    Some(found)
}

/// The body of a message: its number, and where it is.
fn body(bytes: &[u8]) -> Option<(u64, Range<usize>)> {
    fields(bytes, 0..bytes.len())?
        .into_iter()
        .find(|field| field.number > 1)
        .map(|field| (field.number, field.value))
}

/// The row of an encoded message.
pub(crate) fn row<'a>(table: &'a Table, bytes: &[u8]) -> Option<&'a MessageRow> {
    table.body(body(bytes)?.0)
}

/// The message with one bound field altered: each in turn, with its name.
pub(crate) fn alterations(table: &Table, bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut altered = Vec::new();
    if let Some((number, within)) = body(bytes)
        && let Some(row) = table.body(number)
    {
        alter(table, bytes, row, within, &row.name, &mut altered);
    }
    altered
}

fn alter(
    table: &Table,
    bytes: &[u8],
    row: &MessageRow,
    within: Range<usize>,
    path: &str,
    altered: &mut Vec<(String, Vec<u8>)>,
) {
    for field in fields(bytes, within).unwrap_or_default() {
        let Some((name, _, true)) = row.fields.iter().find(|(_, number, _)| *number == field.number) else {
            continue;
        };
        let path = format!("{path}.{name}");
        // A field that is a message has the message's name.
        let inner =
            table.message(&(name[..1].to_uppercase() + &name[1..])).filter(|row| row.number.is_none());
        if let Some(inner) = inner {
            alter(table, bytes, inner, field.value, &path, altered);
            continue;
        }
        // The last byte of what has a length, the first of a number: it is the lowest.
        let place = if field.kind == 2 { field.value.end.checked_sub(1) } else { Some(field.value.start) };
        if let Some(place) = place.filter(|place| field.value.contains(place)) {
            let mut bytes = bytes.to_vec();
            bytes[place] ^= 1;
            altered.push((path, bytes));
        }
    }
}
