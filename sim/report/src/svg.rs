//! Plots as SVG.
//!
//! Stand-alone, a drawing is on white paper. Inside the page a style sheet replaces each colour by one that
//! fits the page's own paper: that is why colours here are few and named.

mod marker;
mod scale;

use maud::html;
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::element::PathElement;
use plotters::prelude::{
    ChartBuilder, Color as _, DrawingArea, FontStyle, IntoDrawingArea as _, IntoFont as _, LineSeries,
    RGBColor, SVGBackend, ShapeStyle, Text, TextStyle,
};

use self::marker::{ErrorBar, Marker};
use self::scale::PlotLayout;
use crate::{Ink, LegendItem, Panel, Plot, ReportError, Result, Series};

/// The paper.
pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
/// Words.
pub(super) const WORDS: RGBColor = RGBColor(0x2B, 0x33, 0x3C);
/// Lines behind the data.
pub(super) const GRID: RGBColor = RGBColor(0xE4, 0xE8, 0xEC);
/// Axes.
pub(super) const AXIS: RGBColor = RGBColor(0x9A, 0xA4, 0xAE);

const LEGEND_LINE: u32 = 26;
/// Left end of the axes.
const PLOT_LEFT: i32 = 88;
const FONT: &str = "system-ui, Helvetica, Arial, sans-serif";
const FONT_SIZE: i32 = 18;
/// Broken lines are drawn this wide and then rewritten: the library breaks a line only at whole pixels, which
/// is visible.
const BROKEN: u32 = 3;

type PlotBackend<'a> = SVGBackend<'a>;
type Area<'a> = DrawingArea<PlotBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Size of a drawing. Letters have the same size in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Format for windows and paper: two panels in a row.
    Wide,
    /// Format for telephones: one panel in a row.
    Narrow,
}

impl Format {
    const fn width(self) -> u32 {
        match self {
            Self::Wide => 920,
            Self::Narrow => 460,
        }
    }

    const fn columns(self) -> usize {
        match self {
            Self::Wide => 2,
            Self::Narrow => 1,
        }
    }

    /// Height of a panel, of several or alone.
    const fn height(self, alone: bool) -> u32 {
        match (self, alone) {
            (Self::Wide, true) => 430,
            (Self::Wide, false) => 310,
            (Self::Narrow, _) => 320,
        }
    }

    const fn legend_left(self) -> i32 {
        match self {
            Self::Wide => 88,
            Self::Narrow => 10,
        }
    }
}

/// Draws a plot.
pub(super) fn render(plot: &Plot, format: Format) -> Result<String> {
    let mut text = String::new();
    draw(plot, format, &mut text)
        .map_err(|error| ReportError::Plot { plot: plot.slug.clone(), reason: error.to_string() })?;
    let broken = format!(r#"stroke-width="{BROKEN}""#);
    let text = text.replace(&broken, r#"stroke-width="2" stroke-dasharray="7 5""#);
    Ok(titled(&text, &plot.caption))
}

/// The colour of an ink, on white paper.
pub(super) fn colour(ink: Ink) -> RGBColor {
    let (red, green, blue) = ink.on_light();
    RGBColor(red, green, blue)
}

/// Gives the drawing a title for screen readers.
fn titled(svg: &str, title: &str) -> String {
    let Some((head, body)) = svg.split_once('>') else { return svg.into() };
    format!("{head} role=\"img\">{}{body}", html! { title { (title) } }.into_string())
}

fn draw(plot: &Plot, format: Format, text: &mut String) -> Drawn {
    let legend = legend_lines(plot, format);
    let legend_height = LEGEND_LINE * number(legend.len()) + 12;
    let rows = plot.panels.len().div_ceil(format.columns()).max(1);
    let height = format.height(rows <= 1) * number(rows);
    let root = SVGBackend::with_string(text, (format.width(), legend_height + height)).into_drawing_area();
    root.fill(&PAPER)?;
    let (top, below) = root.split_vertically(legend_height);
    draw_legend(&top, &legend)?;
    let layout = PlotLayout::of(plot, format);
    let columns = plot.panels.len().clamp(1, format.columns());
    for (area, panel) in below.split_evenly((rows, columns)).iter().zip(&plot.panels) {
        draw_panel(area, plot, panel, &layout)?;
    }
    root.present()?;
    Ok(())
}

/// Converts a number of lines or rows: far fewer than would overflow.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).min(1000)
}

fn draw_panel(area: &Area<'_>, plot: &Plot, panel: &Panel, layout: &PlotLayout) -> Drawn {
    let named = !panel.title.is_empty();
    if named {
        area.draw(&Text::new(panel.title.clone(), (PLOT_LEFT, 8), bold(FONT_SIZE, WORDS)))?;
    }
    let mut chart = ChartBuilder::on(area)
        .margin_top(if named { 32 } else { 6 })
        .margin_right(30)
        .margin_bottom(6)
        .margin_left(4)
        .x_label_area_size(54)
        .y_label_area_size(84)
        .build_cartesian_2d(layout.x.clone(), layout.y.clone())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(GRID.stroke_width(1))
        .axis_style(AXIS.stroke_width(1))
        .label_style(font(FONT_SIZE - 1, WORDS))
        .axis_desc_style(font(FONT_SIZE, WORDS))
        .x_desc(&plot.x.title)
        .y_desc(&plot.y.title)
        .draw()?;
    for series in &panel.series {
        let points = layout.place(&series.points);
        let style = if series.fitted { fit_style(series.ink) } else { stroke(series.ink, series.dashed) };
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        let ends = series.spread.iter().map(|(x, low, high)| layout.place(&[(*x, *low), (*x, *high)]));
        let bars = ends.filter_map(|ends| <[_; 2]>::try_from(ends).ok());
        chart.draw_series(bars.map(|ends| ErrorBar { ink: series.ink, ends }))?;
        if !series.fitted {
            chart.draw_series(points.into_iter().map(|at| Marker { ink: series.ink, at }))?;
        }
    }
    Ok(())
}

/// The legend's items, as many in a line as fit.
fn legend_lines(plot: &Plot, format: Format) -> Vec<Vec<(i32, LegendItem<'_>)>> {
    let mut lines = vec![Vec::new()];
    let mut left = format.legend_left();
    for item in plot.legend() {
        let width = 44 + i32::try_from(item.name.chars().count()).unwrap_or(100) * 8 + 26;
        if left + width > format.width().cast_signed() && left > format.legend_left() {
            lines.push(Vec::new());
            left = format.legend_left();
        }
        if let Some(line) = lines.last_mut() {
            line.push((left, item));
        }
        left += width;
    }
    lines
}

fn draw_legend(area: &Area<'_>, lines: &[Vec<(i32, LegendItem<'_>)>]) -> Drawn {
    for (y, line) in (16_i32..).step_by(LEGEND_LINE as usize).zip(lines) {
        for &(x, LegendItem { name, ink, dashed, fitted }) in line {
            let style = if fitted { fit_style(ink) } else { stroke(ink, dashed) };
            area.draw(&PathElement::new(vec![(x, y), (x + 34, y)], style))?;
            if !fitted {
                area.draw(&Marker { ink, at: (x + 17, y) })?;
            }
            area.draw(&Text::new(name.to_string(), (x + 42, y - 8), font(FONT_SIZE, WORDS)))?;
        }
    }
    Ok(())
}

/// The flat strategy's line is the widest, so that it is visible where the tree's, which is drawn later,
/// covers it.
fn stroke(ink: Ink, dashed: bool) -> ShapeStyle {
    let width = match ink {
        _ if dashed => BROKEN,
        Ink::Flat => 4,
        _ => 2,
    };
    colour(ink).stroke_width(width)
}

/// A curve that was fitted is thinner than what was measured.
fn fit_style(ink: Ink) -> ShapeStyle {
    colour(ink).stroke_width(1)
}

fn line_style(ink: Ink) -> ShapeStyle {
    colour(ink).stroke_width(2)
}

fn font(size: i32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(&colour)
}

fn bold(size: i32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size, FontStyle::Bold).into_font().color(&colour)
}

/// The points of a series, and the ends of its error bars, that its scales can show.
fn visible(series: &Series) -> impl Iterator<Item = (f64, f64)> + '_ {
    let ends = series.spread.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]);
    series.points.iter().copied().chain(ends).filter(|(x, y)| x.is_finite() && y.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Unit};

    fn plot(points: &[(f64, f64)], panels: usize) -> Plot {
        let series = Series::new("a < b", Ink::Flat, points.to_vec());
        let panel = Panel { title: "one & all".into(), series: vec![series] };
        Plot {
            slug: "growth".into(),
            caption: "Time & bytes".into(),
            x: Axis::log("drones", Unit::Count),
            y: Axis::log("time", Unit::Seconds),
            panels: vec![panel; panels],
        }
    }

    #[test]
    fn drawing_is_well_formed_and_says_what_it_shows() {
        for (panels, format) in [(1, Format::Wide), (2, Format::Wide), (4, Format::Wide), (3, Format::Narrow)]
        {
            let svg = render(&plot(&[(1.0, 1e-6), (1e6, 1.0)], panels), format).unwrap();
            let tree = roxmltree::Document::parse(&svg).unwrap();
            let texts: Vec<&str> = tree.descendants().filter_map(|node| node.text()).map(str::trim).collect();
            for expected in ["Time & bytes", "a < b", "one & all", "drones", "time", "1 M", "1 µs"] {
                assert!(texts.contains(&expected), "{expected}: {texts:?}");
            }
        }
    }

    #[test]
    fn drawing_has_a_marker_for_every_point() {
        let draw = |points: &[(f64, f64)]| render(&plot(points, 1), Format::Wide).unwrap();
        let count = |points: &[(f64, f64)]| draw(points).matches("<circle").count();
        assert_eq!(count(&[(1.0, 1.0), (2.0, 3.0), (4.0, 9.0)]) - count(&[(1.0, 1.0)]), 2);
    }

    #[test]
    fn error_bars_span_from_the_least_to_the_greatest_and_have_room() {
        let with = |spread: Vec<(f64, f64, f64)>| {
            let mut plot = plot(&[(1.0, 1.0), (2.0, 3.0)], 1);
            plot.panels[0].series[0].spread = spread;
            render(&plot, Format::Wide).unwrap()
        };
        let (bare, barred) = (with(Vec::new()), with(vec![(1.0, 0.5, 2.0), (2.0, 1.0, 400.0)]));
        let lines = |svg: &str| svg.matches("<line").count();
        // A bar and its two ends, twice; the axis reaches to what they show.
        assert!(lines(&barred) >= lines(&bare) + 6, "{} and {}", lines(&bare), lines(&barred));
        assert!(!bare.contains("100 s") && barred.contains("100 s"), "{barred}");
        // One end at zero has no logarithm: no bar, and no panic.
        assert!(lines(&with(vec![(1.0, 0.0, 2.0)])) <= lines(&barred));
    }

    #[test]
    fn a_fitted_curve_has_no_marks() {
        let mut plot = plot(&[(1.0, 1.0), (2.0, 3.0)], 1);
        plot.panels[0].series = vec![Series::fit("a·n", Ink::Flat, vec![(1.0, 1.0), (2.0, 2.0)])];
        let svg = render(&plot, Format::Wide).unwrap();
        assert!(svg.contains("a·n") && !svg.contains("<circle"), "{svg}");
    }

    #[test]
    fn nothing_can_be_drawn_too() {
        for format in [Format::Wide, Format::Narrow] {
            for plot in [plot(&[], 1), plot(&[(1.0, 0.0), (f64::NAN, 1.0)], 2), plot(&[], 0)] {
                roxmltree::Document::parse(&render(&plot, format).unwrap()).unwrap();
            }
        }
    }
}
