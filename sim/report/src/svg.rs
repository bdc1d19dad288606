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

use self::marker::Marker;
use self::scale::Layout;
use crate::{Ink, Panel, Plot, ReportError, Result, Series};

/// The paper.
pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
/// Words.
pub(super) const WORDS: RGBColor = RGBColor(0x2B, 0x33, 0x3C);
/// Lines behind the data.
pub(super) const GRID: RGBColor = RGBColor(0xE4, 0xE8, 0xEC);
/// Axes.
pub(super) const AXIS: RGBColor = RGBColor(0x9A, 0xA4, 0xAE);

const WIDTH: u32 = 920;
const SINGLE_HEIGHT: u32 = 430;
const PANEL_HEIGHT: u32 = 310;
const LEGEND_LINE: u32 = 26;
const LEGEND_LEFT: i32 = 88;
const FONT: &str = "system-ui, Helvetica, Arial, sans-serif";
const FONT_SIZE: i32 = 18;
/// Broken lines are drawn this wide and then rewritten: the library breaks a line only at whole pixels, which
/// is visible.
const BROKEN: u32 = 3;

type Backend<'a> = SVGBackend<'a>;
type Area<'a> = DrawingArea<Backend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Draws a plot.
pub(super) fn render(plot: &Plot) -> Result<String> {
    let mut text = String::new();
    draw(plot, &mut text)
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

fn draw(plot: &Plot, text: &mut String) -> Drawn {
    let legend = legend_lines(plot);
    let legend_height = LEGEND_LINE * number(legend.len()) + 12;
    let rows = plot.panels.len().div_ceil(2);
    let height = if rows > 1 { PANEL_HEIGHT * number(rows) } else { SINGLE_HEIGHT };
    let root = SVGBackend::with_string(text, (WIDTH, legend_height + height)).into_drawing_area();
    root.fill(&PAPER)?;
    let (top, below) = root.split_vertically(legend_height);
    draw_legend(&top, &legend)?;
    let layout = Layout::of(plot);
    let columns = plot.panels.len().clamp(1, 2);
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

fn draw_panel(area: &Area<'_>, plot: &Plot, panel: &Panel, layout: &Layout) -> Drawn {
    let named = !panel.title.is_empty();
    if named {
        area.draw(&Text::new(panel.title.clone(), (LEGEND_LEFT, 8), bold(FONT_SIZE, WORDS)))?;
    }
    let mut chart = ChartBuilder::on(area)
        .margin_top(if named { 32 } else { 6 })
        .margin_right(24)
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
        let style = stroke(series.ink, series.dashed);
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        chart.draw_series(points.into_iter().map(|at| Marker { ink: series.ink, at }))?;
    }
    Ok(())
}

/// The legend's items, as many in a line as fit.
fn legend_lines(plot: &Plot) -> Vec<Vec<(i32, &str, Ink, bool)>> {
    let mut lines: Vec<Vec<(i32, &str, Ink, bool)>> = vec![Vec::new()];
    let mut left = LEGEND_LEFT;
    for (name, ink, dashed) in plot.legend() {
        let width = 44 + i32::try_from(name.chars().count()).unwrap_or(100) * 8 + 26;
        if left + width > WIDTH.cast_signed() && left > LEGEND_LEFT {
            lines.push(Vec::new());
            left = LEGEND_LEFT;
        }
        if let Some(line) = lines.last_mut() {
            line.push((left, name, ink, dashed));
        }
        left += width;
    }
    lines
}

fn draw_legend(area: &Area<'_>, lines: &[Vec<(i32, &str, Ink, bool)>]) -> Drawn {
    for (y, line) in (16_i32..).step_by(LEGEND_LINE as usize).zip(lines) {
        for &(x, name, ink, dashed) in line {
            area.draw(&PathElement::new(vec![(x, y), (x + 34, y)], stroke(ink, dashed)))?;
            area.draw(&Marker { ink, at: (x + 17, y) })?;
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

fn line_style(ink: Ink) -> ShapeStyle {
    colour(ink).stroke_width(2)
}

fn font(size: i32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(&colour)
}

fn bold(size: i32, colour: RGBColor) -> TextStyle<'static> {
    (FONT, size, FontStyle::Bold).into_font().color(&colour)
}

/// The points of a series that its scales can show.
fn visible(series: &Series) -> impl Iterator<Item = (f64, f64)> + '_ {
    series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
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
        for panels in [1, 2, 4] {
            let svg = render(&plot(&[(1.0, 1e-6), (1e6, 1.0)], panels)).unwrap();
            let tree = roxmltree::Document::parse(&svg).unwrap();
            let texts: Vec<&str> = tree.descendants().filter_map(|node| node.text()).map(str::trim).collect();
            for expected in ["Time & bytes", "a < b", "one & all", "drones", "time", "1 M", "1 µs"] {
                assert!(texts.contains(&expected), "{expected}: {texts:?}");
            }
        }
    }

    #[test]
    fn drawing_has_a_marker_for_every_point() {
        let count = |points: &[(f64, f64)]| render(&plot(points, 1)).unwrap().matches("<circle").count();
        assert_eq!(count(&[(1.0, 1.0), (2.0, 3.0), (4.0, 9.0)]) - count(&[(1.0, 1.0)]), 2);
    }

    #[test]
    fn nothing_can_be_drawn_too() {
        roxmltree::Document::parse(&render(&plot(&[], 1)).unwrap()).unwrap();
        roxmltree::Document::parse(&render(&plot(&[(1.0, 0.0), (f64::NAN, 1.0)], 2)).unwrap()).unwrap();
    }
}
