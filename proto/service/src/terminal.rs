//! Writing results to standard output.

use std::io::{self, Write};

/// Writes a line to standard output and flushes it, so that a pipe sees it at once. A reader that went away (`| head`)
/// is no error.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Aligns rows in columns, for people. The first row is the heading.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut lines = vec![aligned(&heading.map(String::from), &widths)];
    lines.extend(rows.iter().map(|row| aligned(row, &widths)));
    lines.join("\n")
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<_> = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| format!("{cell:<width$}"))
        .collect();
    padded.join("  ").trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["edge-1".to_string(), "up".to_string()],
            ["e".to_string(), "down".to_string()],
        ];
        assert_eq!(
            table(["NAME", "STATE"], &rows),
            "NAME    STATE\nedge-1  up\ne       down"
        );
    }
}
