//! Markers of points. Every ink has a shape of its own, for readers who do not see its colour.

use std::iter::{Once, once};

use plotters::element::{Drawable, PointCollection};
use plotters::prelude::{Color as _, DrawingBackend};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::{PAPER, colour, line_style};
use crate::Ink;

const RADIUS: u32 = 5;

/// The flat strategy's marker is larger, so that it is visible behind the tree's.
const FLAT_RADIUS: u32 = 6;

/// A mark at a place.
pub(super) struct Marker<C> {
    pub(super) ink: Ink,
    pub(super) at: C,
}

/// An error bar between two places, one above the other.
pub(super) struct ErrorBar<C> {
    pub(super) ink: Ink,
    pub(super) ends: [C; 2],
}

/// Half the width of the ends of an error bar.
const END: i32 = 5;

impl<'a, C> PointCollection<'a, C> for &'a ErrorBar<C> {
    type Point = &'a C;
    type IntoIter = std::slice::Iter<'a, C>;

    fn point_iter(self) -> Self::IntoIter {
        self.ends.iter()
    }
}

impl<C, B: DrawingBackend> Drawable<B> for ErrorBar<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut places: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        let (Some(low), Some(high)) = (places.next(), places.next()) else { return Ok(()) };
        let style = line_style(self.ink);
        backend.draw_line(low, high, &style)?;
        for (x, y) in [low, high] {
            backend.draw_line((x - END, y), (x + END, y), &style)?;
        }
        Ok(())
    }
}

impl<'a, C> PointCollection<'a, C> for &'a Marker<C> {
    type Point = &'a C;
    type IntoIter = Once<&'a C>;

    fn point_iter(self) -> Self::IntoIter {
        once(&self.at)
    }
}

impl<C, B: DrawingBackend> Drawable<B> for Marker<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        places: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        for at in places {
            match corners(self.ink) {
                Some(corners) => {
                    let corners = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y));
                    backend.fill_polygon(corners, &colour(self.ink).filled())?;
                }
                None if self.ink == Ink::Published => {
                    backend.draw_circle(at, RADIUS, &PAPER.filled(), true)?;
                    backend.draw_circle(at, RADIUS, &line_style(self.ink), false)?;
                }
                None => backend.draw_circle(at, FLAT_RADIUS, &colour(self.ink).filled(), true)?,
            }
        }
        Ok(())
    }
}

/// The corners of a mark that has some; the others are round.
const fn corners(ink: Ink) -> Option<&'static [(i32, i32)]> {
    match ink {
        Ink::Published | Ink::Flat => None,
        Ink::Paper => Some(&[(-4, -4), (5, -4), (5, 5), (-4, 5)]),
        Ink::Tree => Some(&[(0, -6), (5, 4), (-5, 4)]),
        Ink::Rival => Some(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
        Ink::Extra => Some(&[(0, 6), (6, -5), (-6, -5)]),
    }
}
