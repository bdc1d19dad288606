//! Tables: columns with units, rows of figures.

use serde::Serialize;

use crate::Unit;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name of the column in CSV, with the unit: `published_seconds`.
    pub key: String,
    /// Name of the column for people.
    pub title: String,
    /// Unit of its figures.
    pub unit: Unit,
    /// True if the eye shall go there first.
    pub strong: bool,
    /// The bar that a page draws below each figure.
    #[serde(skip)]
    pub bar: Bar,
}

/// A bar below a figure, as long as the figure is, on the scale of its column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Bar {
    /// No bar.
    #[default]
    Absent,
    /// A bar from zero.
    FromZero,
    /// A bar from the figure of the same row in the column of this key: a span of time on a time line.
    From(String),
}

impl Column {
    /// A column of words.
    #[must_use]
    pub fn text(key: &str, title: &str) -> Self {
        Self::new(key, title, Unit::Text)
    }

    /// A column of figures.
    #[must_use]
    pub fn new(key: &str, title: &str, unit: Unit) -> Self {
        Self { key: key.into(), title: title.into(), unit, strong: false, bar: Bar::Absent }
    }

    /// The same, where the eye shall go first.
    #[must_use]
    pub fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    /// The same with bars.
    #[must_use]
    pub fn with_bar(self, bar: Bar) -> Self {
        Self { bar, ..self }
    }
}

/// The cell of a row and a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CellValue {
    /// Words.
    Text(String),
    /// A figure, in the column's unit.
    Number(f64),
    /// No value: not published, not measured, or of no meaning here.
    Missing,
}

impl CellValue {
    /// The ratio of `whole` to `part`; nothing unless both are there.
    #[must_use]
    pub fn ratio(whole: Option<f64>, part: Option<f64>) -> Self {
        match (whole, part) {
            (Some(whole), Some(part)) if part > 0.0 => Self::Number(whole / part),
            _ => Self::Missing,
        }
    }

    /// The figure, if it is one.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Missing => None,
        }
    }

    /// The value as text for people.
    #[must_use]
    pub fn show(&self, unit: Unit) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => unit.show(*number),
            Self::Missing => "–".into(),
        }
    }

    /// The value for programs: figures in the column's unit, nothing for a missing one.
    fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => format!("{number}"),
            Self::Missing => String::new(),
        }
    }
}

impl From<&str> for CellValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<f64> for CellValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for CellValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for CellValue {
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl<T: Into<Self>> From<Option<T>> for CellValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Rows of figures under columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Names it in paths: lower-case letters, digits and hyphens; no other table of the report has it.
    pub slug: String,
    /// Caption of the table.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows with as many values each as there are columns.
    pub rows: Vec<Vec<CellValue>>,
    /// Notes that a reader needs to read it right.
    pub notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(slug: &str, caption: &str, columns: Vec<Column>) -> Self {
        Self { slug: slug.into(), caption: caption.into(), columns, ..Self::default() }
    }

    /// Adds a row, filled up or cut to the number of columns.
    pub fn push(&mut self, mut row: Vec<CellValue>) {
        row.resize(self.columns.len(), CellValue::Missing);
        self.rows.push(row);
    }

    /// The figure in the row that begins with these values, under the column of this key.
    #[must_use]
    pub fn figure(&self, row: &[CellValue], key: &str) -> Option<f64> {
        let column = self.columns.iter().position(|column| column.key == key)?;
        self.rows.iter().find(|candidate| candidate.starts_with(row))?.get(column)?.number()
    }

    /// Beginning and end of each row's bar in this column as parts of the longest, from 0 to 1; `None` if it
    /// has none.
    #[must_use]
    pub fn bars(&self, column: usize) -> Vec<Option<(f64, f64)>> {
        let spans: Vec<Option<(f64, f64)>> = self.rows.iter().map(|row| self.span(row, column)).collect();
        let end = spans.iter().flatten().map(|(_, to)| *to).fold(0.0, f64::max);
        let part = |(from, to): (f64, f64)| (end > 0.0).then(|| (from / end, to / end));
        spans.into_iter().map(|span| span.and_then(part)).collect()
    }

    fn span(&self, row: &[CellValue], column: usize) -> Option<(f64, f64)> {
        let length = row.get(column)?.number().filter(|length| length.is_finite() && *length >= 0.0)?;
        let from = match &self.columns.get(column)?.bar {
            Bar::Absent => return None,
            Bar::FromZero => 0.0,
            Bar::From(key) => {
                let column = self.columns.iter().position(|column| column.key == *key)?;
                row.get(column)?.number().filter(|from| from.is_finite() && *from >= 0.0)?
            }
        };
        Some((from, from + length))
    }

    /// CSV with the keys of the columns as its header.
    #[must_use]
    pub fn csv(&self) -> String {
        let head = self.columns.iter().map(|column| column.key.clone()).collect();
        crate::csv(head, self.rows.iter().map(|row| row.iter().map(CellValue::plain).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::text("operation", "operation"),
            Column::new("drones", "drones", Unit::Count),
            Column::new("ours_seconds", "ours", Unit::Seconds).strong(),
        ];
        let mut table = Table::new("tiny", "A tiny table", columns);
        table.push(vec!["one, \"quoted\"".into(), 1_u32.into(), 0.000_012_5.into()]);
        table.push(vec!["two".into(), 2000_usize.into()]);
        table
    }

    #[test]
    fn csv_parses_back_to_the_same_values() {
        let text = table().csv();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap(), vec!["operation", "drones", "ours_seconds"]);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(&rows[0][0], "one, \"quoted\"");
        assert_eq!(rows[0][2].parse::<f64>().unwrap(), 0.000_012_5);
        assert_eq!((&rows[1][1], &rows[1][2]), ("2000", ""));
    }

    #[test]
    fn figures_are_found_by_row_and_column() {
        let row = ["one, \"quoted\"".into(), 1_u32.into()];
        assert_eq!(table().figure(&row, "ours_seconds"), Some(0.000_012_5));
        assert_eq!(table().figure(&["two".into()], "ours_seconds"), None);
        assert_eq!(table().figure(&["three".into()], "drones"), None);
    }

    #[test]
    fn bars_are_parts_of_the_longest_and_begin_where_another_column_says() {
        let columns = vec![
            Column::new("began_seconds", "began", Unit::Seconds),
            Column::new("took_seconds", "took", Unit::Seconds).with_bar(Bar::From("began_seconds".into())),
            Column::new("bytes", "bytes", Unit::Bytes).with_bar(Bar::FromZero),
        ];
        let mut table = Table::new("bars", "Bars", columns);
        table.push(vec![0.0.into(), 1.0.into(), 50.0.into()]);
        table.push(vec![1.0.into(), 3.0.into(), CellValue::Missing]);
        table.push(vec![CellValue::Missing, 9.0.into(), 100.0.into()]);
        assert_eq!(table.bars(0), [None, None, None]);
        assert_eq!(table.bars(1), [Some((0.0, 0.25)), Some((0.25, 1.0)), None]);
        assert_eq!(table.bars(2), [Some((0.0, 0.5)), None, Some((0.0, 1.0))]);
        table.rows.iter_mut().for_each(|row| row[2] = 0.0.into());
        assert_eq!(table.bars(2), [None, None, None]);
    }

    #[test]
    fn ratio_needs_both_sides() {
        assert_eq!(CellValue::ratio(Some(6.0), Some(2.0)), CellValue::Number(3.0));
        assert_eq!(CellValue::ratio(None, Some(2.0)), CellValue::Missing);
        assert_eq!(CellValue::ratio(Some(1.0), Some(0.0)), CellValue::Missing);
    }
}
