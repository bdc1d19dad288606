//! Draws reports and tables for a terminal.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment};

use crate::{Report, Table, Unit};

pub(super) fn render(report: &Report) -> String {
    let mut text = format!("{}\n", report.title);
    for highlight in &report.highlights {
        let _ = writeln!(text, "  {}: {} ({})", highlight.what, highlight.figure, highlight.beside);
    }
    for table in report.tables() {
        let _ = write!(text, "\n{}", render_table(table));
    }
    let machine = &report.machine;
    let built = if machine.optimised { "" } else { "; built without optimisation: times mean nothing" };
    let _ = write!(
        text,
        "\n{}, {} cores, {}, {}{built}",
        machine.cpu, machine.cores, machine.system, machine.rustc
    );
    text
}

fn render_table(table: &Table) -> String {
    let mut drawn = comfy_table::Table::new();
    drawn.load_preset(UTF8_FULL_CONDENSED);
    drawn.set_header(table.columns.iter().map(|column| Cell::new(&column.title)));
    for row in &table.rows {
        drawn.add_row(row.iter().zip(&table.columns).map(|(value, column)| value.show(column.unit)));
    }
    for (drawn, column) in drawn.column_iter_mut().zip(&table.columns) {
        if column.unit != Unit::Text {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    let notes: String = table.notes.iter().map(|note| format!("  {note}\n")).collect();
    format!("{}\n{drawn}\n{notes}", table.caption)
}

/// Draws a table for a terminal, with everything but the first column aligned to the right.
pub fn grid<Row>(head: Row, rows: impl IntoIterator<Item = Row>) -> String
where
    Row: IntoIterator<Item: Into<Cell>>,
{
    let mut drawn = comfy_table::Table::new();
    drawn.load_preset(UTF8_FULL_CONDENSED);
    drawn.set_header(head);
    for row in rows {
        drawn.add_row(row);
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    drawn.to_string()
}
