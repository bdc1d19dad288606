//! Reports as one HTML page: style and drawings inside, no script, nothing fetched.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::style::RGBColor;

use crate::svg::Format;
use crate::{CellValue, Experiment, Highlight, Ink, Plot, Report, Result, Table, Unit, svg};

pub(super) const STYLE: &str = include_str!("page/style.css");

pub(super) fn render(report: &Report) -> Result<String> {
    let sections = report.experiments.iter().map(section).collect::<Result<Vec<Markup>>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (metadata(&report.title))
                style { (PreEscaped(STYLE)) (PreEscaped(inks())) }
            }
            body {
                header { (opening(report)) }
                main { @for section in &sections { (section) } }
                footer { (closing(report)) }
            }
        }
    };
    Ok(page.into_string())
}

/// Elements that the head of every page has before its style.
pub(super) fn metadata(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) }
    }
}

fn opening(report: &Report) -> Markup {
    html! {
        p.kicker { "Quiver " (report.version) " · " (report.day_and_time()) }
        h1 { (report.title) }
        @for paragraph in &report.lead { p.lead { (paragraph) } }
        @if !report.machine.optimised {
            p.warning { "Built without optimisation: the times on this page mean nothing." }
        }
        @if !report.highlights.is_empty() {
            ul.highlights { @for highlight in &report.highlights { (card(highlight)) } }
        }
        (machine(report))
        nav aria-label="Contents" {
            ol {
                @for experiment in &report.experiments {
                    li { a href={ "#" (experiment.slug) } { (experiment.title) } }
                }
            }
        }
    }
}

fn card(highlight: &Highlight) -> Markup {
    html! {
        li {
            span.what { (highlight.what) }
            span.figure { (highlight.figure) }
            span.beside { (highlight.beside) }
        }
    }
}

fn machine(report: &Report) -> Markup {
    let machine = &report.machine;
    let memory = machine.memory.map(|bytes| Unit::Bytes.show(bytes as f64));
    html! {
        dl.machine {
            div { dt { "Processor" } dd { (machine.cpu) ", " (machine.cores) " threads" } }
            @if let Some(memory) = memory { div { dt { "Memory" } dd { (memory) } } }
            div { dt { "System" } dd { (machine.system) } }
            div { dt { "Compiler" } dd { (machine.rustc) } }
            div { dt { "Commit" } dd { code { (machine.commit) } } }
            div { dt { "Repeat it" } dd { code { (report.command) } } }
        }
    }
}

fn section(experiment: &Experiment) -> Result<Markup> {
    let plots = experiment.plots.iter().map(figure).collect::<Result<Vec<Markup>>>()?;
    Ok(html! {
        section id=(experiment.slug) {
            h2 { (experiment.title) }
            @for paragraph in &experiment.about { p { (paragraph) } }
            @for plot in &plots { (plot) }
            @for table in &experiment.tables { (grid(table)) }
            div.fineprint {
                (fineprint("What was published", &experiment.published))
                (fineprint("How ours was measured", &experiment.method))
                (fineprint("What differs", &experiment.differences))
            }
        }
    })
}

fn fineprint(title: &str, paragraphs: &[String]) -> Markup {
    html! {
        @if !paragraphs.is_empty() {
            div { h3 { (title) } @for paragraph in paragraphs { p { (paragraph) } } }
        }
    }
}

fn figure(plot: &Plot) -> Result<Markup> {
    let (wide, narrow) = (svg::render(plot, Format::Wide)?, svg::render(plot, Format::Narrow)?);
    Ok(html! {
        figure {
            div.wide { (PreEscaped(wide)) }
            div.narrow { (PreEscaped(narrow)) }
            figcaption { (plot.caption) }
        }
    })
}

fn grid(table: &Table) -> Markup {
    let bars: Vec<_> = (0..table.columns.len()).map(|column| table.bars(column)).collect();
    html! {
        div.table {
            div.scroll tabindex="0" {
                table {
                    caption { (table.caption) }
                    thead { tr { @for column in &table.columns { th scope="col" class=[class(column.unit, false)] { (column.title) } } } }
                    tbody {
                        @for (index, row) in table.rows.iter().enumerate() {
                            tr {
                                @for ((value, column), bars) in row.iter().zip(&table.columns).zip(&bars) {
                                    td class=[class(column.unit, column.strong && *value != CellValue::Missing)] {
                                        (value.show(column.unit))
                                        @if let Some((from, to)) = bars[index] { (bar(from, to)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @for note in &table.notes { p.note { (note) } }
        }
    }
}

/// A bar over a part of the cell's width, from 0 to 1. The figure above it says the same.
fn bar(from: f64, to: f64) -> Markup {
    let style = format!("margin-left:{:.2}%;width:{:.2}%", 100.0 * from, 100.0 * (to - from));
    html! { div.bar aria-hidden="true" { div style=(style) {} } }
}

fn class(unit: Unit, strong: bool) -> Option<&'static str> {
    match (unit, strong) {
        (Unit::Text, false) => None,
        (Unit::Text, true) => Some("strong"),
        (_, false) => Some("number"),
        (_, true) => Some("number strong"),
    }
}

fn closing(report: &Report) -> Markup {
    html! {
        @if !report.sources.is_empty() {
            h2 { "Sources" }
            ul { @for source in &report.sources { li { (source.citation) " " a href=(source.link) { (source.link) } } } }
        }
        h2 { "Files" }
        p {
            "Beside this page lie all figures for other programs: "
            @for (index, file) in report.files().iter().enumerate() {
                @if index > 0 { ", " }
                code { (file) }
            }
            ". Times in seconds, sizes in bytes."
        }
    }
}

/// Replaces the colours of the drawings by those of the page's paper.
fn inks() -> String {
    let mut style = String::new();
    let mut replace = |colour: RGBColor, variable: &str| {
        let RGBColor(red, green, blue) = colour;
        let hex = format!("#{red:02X}{green:02X}{blue:02X}");
        for property in ["fill", "stroke"] {
            let _ = writeln!(style, "figure svg [{property}=\"{hex}\"]{{{property}:var({variable})}}");
        }
    };
    replace(svg::PAPER, "--panel");
    replace(svg::WORDS, "--ink");
    replace(svg::GRID, "--grid");
    replace(svg::AXIS, "--axis");
    for (index, ink) in Ink::ALL.into_iter().enumerate() {
        replace(svg::colour(ink), &format!("--series-{index}"));
    }
    let palette = |colours: fn(Ink) -> (u8, u8, u8)| -> String {
        let colours = Ink::ALL.into_iter().map(colours).enumerate();
        colours.map(|(index, (r, g, b))| format!("--series-{index}:#{r:02X}{g:02X}{b:02X};")).collect()
    };
    let (light, dark) = (palette(Ink::on_light), palette(Ink::on_dark));
    let _ = writeln!(style, ":root{{{light}}}");
    let _ = writeln!(style, "@media (prefers-color-scheme:dark){{:root{{{dark}}}}}");
    style
}
