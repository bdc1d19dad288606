//! Writes comma-separated values.

use ::csv::Writer;
use serde::Serialize;

/// Writes a head and rows, each cell quoted where needed.
pub fn csv<Row>(head: Row, rows: impl IntoIterator<Item = Row>) -> String
where
    Row: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut writer = Writer::from_writer(Vec::new());
    let mut written = writer.write_record(head);
    for row in rows {
        written = written.and_then(|()| writer.write_record(row));
    }
    // Neither a vector nor rows of one length can fail.
    let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Writes records of plain fields, with the fields' names as the head.
pub fn csv_of_records<Record: Serialize>(records: impl IntoIterator<Item = Record>) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    let written = records.into_iter().try_for_each(|record| writer.serialize(record));
    // Neither a vector nor records of plain fields can fail.
    let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
