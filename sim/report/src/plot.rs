//! Plots: panels with series of points over two axes. Drawn as SVG by the neighbouring module.

use serde::Serialize;

use crate::Unit;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Linear from zero.
    Linear,
    /// Logarithmic; values of zero and below are left out.
    Log,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Title of the axis.
    pub title: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Scale of the axis.
    pub scale: Scale,
}

impl Axis {
    /// An axis that starts at zero.
    #[must_use]
    pub fn linear(title: &str, unit: Unit) -> Self {
        Self { title: title.into(), unit, scale: Scale::Linear }
    }

    /// An axis of powers of ten.
    #[must_use]
    pub fn log(title: &str, unit: Unit) -> Self {
        Self { title: title.into(), unit, scale: Scale::Log }
    }
}

/// Origin of a series. Each has one colour and one marker throughout a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ink {
    /// Published figures of others.
    Published,
    /// A published algorithm, run by us.
    Paper,
    /// The flat strategy; where it is not about strategies, the first of two of ours.
    Flat,
    /// The tree strategy; where it is not about strategies, the second of two of ours.
    Tree,
    /// Another system, run by us.
    Rival,
    /// Anything else.
    Extra,
}

impl Ink {
    /// All, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Published, Self::Paper, Self::Flat, Self::Tree, Self::Rival, Self::Extra];

    /// Red, green, blue on white paper. Told apart by people who do not see all colours, too.
    #[must_use]
    pub const fn on_light(self) -> (u8, u8, u8) {
        match self {
            Self::Published => (0x5B, 0x65, 0x70),
            Self::Paper => (0xC4, 0x4E, 0x00),
            Self::Flat => (0x0B, 0x6B, 0xB8),
            Self::Tree => (0x2E, 0x85, 0x14),
            Self::Rival => (0xA6, 0x3D, 0x8F),
            Self::Extra => (0x8A, 0x6D, 0x00),
        }
    }

    /// The same at night.
    #[must_use]
    pub const fn on_dark(self) -> (u8, u8, u8) {
        match self {
            Self::Published => (0xB4, 0xBE, 0xC9),
            Self::Paper => (0xFF, 0x9D, 0x4D),
            Self::Flat => (0x5C, 0xB3, 0xFF),
            Self::Tree => (0xA6, 0xE8, 0x5C),
            Self::Rival => (0xF0, 0x8F, 0xDA),
            Self::Extra => (0xE8, 0xC5, 0x47),
        }
    }
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Ink of the series, by its origin.
    pub ink: Ink,
    /// True if the line between its points is broken: they are far apart, or it is a second series of one
    /// colour.
    pub dashed: bool,
    /// (x, y), by ascending x.
    pub points: Vec<(f64, f64)>,
    /// (x, least, greatest): error bars of repeated measurements.
    pub spread: Vec<(f64, f64, f64)>,
    /// True if it is a curve that was fitted: a thin line without marks.
    pub fitted: bool,
}

impl Series {
    /// Points with a line between them.
    #[must_use]
    pub fn new(name: &str, ink: Ink, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), ink, dashed: false, points, spread: Vec::new(), fitted: false }
    }

    /// A curve that was fitted to points.
    #[must_use]
    pub fn fit(name: &str, ink: Ink, points: Vec<(f64, f64)>) -> Self {
        Self { fitted: true, ..Self::new(name, ink, points) }
    }

    /// The same with error bars.
    #[must_use]
    pub fn with_spread(self, spread: Vec<(f64, f64, f64)>) -> Self {
        Self { spread, ..self }
    }

    /// The same with a broken line.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }
}

/// The style of a series and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegendItem<'a> {
    /// Name of the series.
    pub name: &'a str,
    /// Ink of the series, by its origin.
    pub ink: Ink,
    /// True if its line is broken.
    pub dashed: bool,
    /// True if it has no marks.
    pub fitted: bool,
}

/// A field of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// Title of the field among others; empty if there are none.
    pub title: String,
    /// The series drawn in it.
    pub series: Vec<Series>,
}

/// A drawing: one panel, or several over the same axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// Names it in paths: lower-case letters, digits and hyphens; no other plot of the report has it.
    pub slug: String,
    /// Caption of the plot.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Side by side, two in a row.
    pub panels: Vec<Panel>,
}

impl Plot {
    /// A plot of one panel.
    #[must_use]
    pub fn single(slug: &str, caption: &str, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        let panels = vec![Panel { title: String::new(), series }];
        Self { slug: slug.into(), caption: caption.into(), x, y, panels }
    }

    /// Names and styles of all series, each once, in order of appearance.
    #[must_use]
    pub fn legend(&self) -> Vec<LegendItem<'_>> {
        let mut legend = Vec::new();
        for Series { name, ink, dashed, fitted, .. } in self.panels.iter().flat_map(|panel| &panel.series) {
            let item = LegendItem { name, ink: *ink, dashed: *dashed, fitted: *fitted };
            if !legend.contains(&item) {
                legend.push(item);
            }
        }
        legend
    }
}
