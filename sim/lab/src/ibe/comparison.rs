//! Compares one published stage with the ways in which we do it.

use quiver_report::{Axis, CellValue, Column, Ink, Panel, Plot, Series, Table, Unit};

use super::published::{PublishedIbe, PublishedStage};
use crate::measure::Timing;

/// A way of doing it here.
#[derive(Clone, Copy)]
pub(super) struct MeasuredVariant {
    /// Name of the way in CSV.
    pub(super) key: &'static str,
    /// Name of the way for people.
    pub(super) title: &'static str,
    pub(super) ink: Ink,
}

/// Way of the publication.
pub(super) const SAME: MeasuredVariant = MeasuredVariant { key: "ours", title: "here", ink: Ink::Flat };

/// Measurements of a stage.
pub(super) struct StageComparison {
    pub(super) slug: &'static str,
    pub(super) caption: &'static str,
    pub(super) stage: PublishedStage,
    /// Name of the parameter: `validators`.
    pub(super) parameter: &'static str,
    pub(super) ways: Vec<MeasuredVariant>,
    /// A timing for each way, by parameter.
    pub(super) rows: Vec<(u32, Vec<Timing>)>,
    pub(super) notes: Vec<String>,
}

impl StageComparison {
    pub(super) fn table(&self, published: &PublishedIbe) -> Table {
        let mut columns = vec![
            Column::new(self.parameter, self.parameter, Unit::Count),
            Column::new("published_seconds", "published", Unit::Seconds),
        ];
        for MeasuredVariant { key, title, .. } in &self.ways {
            columns.push(Column::new(&format!("{key}_seconds"), title, Unit::Seconds));
            let over = format!("published / {title}");
            columns.push(Column::new(&format!("published_over_{key}"), &over, Unit::Times).strong());
        }
        columns.push(Column::new("samples", "samples", Unit::Count));
        let mut table = Table::new(self.slug, self.caption, columns);
        for (parameter, timings) in &self.rows {
            let theirs = published.figure(self.stage, *parameter);
            let mut row = vec![(*parameter).into(), theirs.into()];
            for timing in timings {
                row.extend([(*timing).into(), CellValue::ratio(theirs, Some(timing.median))]);
            }
            row.push(timings.first().map(|timing| timing.samples).into());
            table.push(row);
        }
        table.notes.clone_from(&self.notes);
        table
    }

    fn panel(&self, published: &PublishedIbe) -> Panel {
        let theirs = self.rows.iter().filter_map(|(parameter, _)| {
            Some((f64::from(*parameter), published.figure(self.stage, *parameter)?))
        });
        let mut series = vec![Series::new("published", Ink::Published, theirs.collect())];
        for (place, way) in self.ways.iter().enumerate() {
            let points = self
                .rows
                .iter()
                .filter_map(|(parameter, timings)| Some((f64::from(*parameter), timings.get(place)?.median)));
            series.push(Series::new(way.title, way.ink, points.collect()));
        }
        Panel { title: self.caption.into(), series }
    }
}

/// Stages side by side over one parameter.
pub(super) fn plot(slug: &str, caption: &str, published: &PublishedIbe, stages: &[StageComparison]) -> Plot {
    let parameter = stages.first().map_or("", |stage| stage.parameter);
    let unit = if parameter == "bytes" { Unit::Bytes } else { Unit::Count };
    Plot {
        slug: slug.into(),
        caption: caption.into(),
        x: Axis::log(parameter, unit),
        y: Axis::log("time", Unit::Seconds),
        panels: stages.iter().map(|stage| stage.panel(published)).collect(),
    }
}
