//! Writes comma-separated values.

use ::csv::Writer;

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
