//! Faults of links, as a file gives them.

use std::time::Duration;

use quiver_scenario_format::{BurstTable, LinksTable, RadioTable};
use toml::Spanned;

use super::ScenarioError;
use super::error::SourceText;
use super::settings::time;
use crate::radio::Loss;
use crate::{Burst, LinkFaults};

/// Reads the faults of links.
pub(super) fn read(source: &SourceText<'_>, table: &LinksTable) -> Result<LinkFaults, ScenarioError> {
    let usual = LinkFaults::SOUND;
    let share = |value: Option<&Spanned<f64>>| value.map_or(Ok(0.0), |value| probability(source, value));
    // Zero would let causes and effects fall together, and stretches of no length run no two nodes at once.
    let delays = Duration::from_micros(1)..=Duration::from_secs(3600);
    let jitters = Duration::ZERO..=Duration::from_secs(3600);
    Ok(LinkFaults {
        delay: table.delay.as_ref().map_or(Ok(usual.delay), |delay| time(source, delay, delays))?,
        jitter: table.jitter.as_ref().map_or(Ok(usual.jitter), |jitter| time(source, jitter, jitters))?,
        loss: share(table.loss.as_ref())?,
        burst: table.burst.as_ref().map(|burst| message_bursts(source, burst)).transpose()?,
        duplicate: share(table.duplicate.as_ref())?,
        reorder: share(table.reorder.as_ref())?,
        corrupt: share(table.corrupt.as_ref())?,
    })
}

/// Reads the losses of a radio's links.
pub(super) fn radio_loss(source: &SourceText<'_>, table: &RadioTable) -> Result<Loss, ScenarioError> {
    match (&table.loss, &table.burst) {
        (None, None) => Ok(Loss::None),
        (Some(loss), None) => Ok(Loss::Independent { per_frame: probability(source, loss)? }),
        (None, Some(burst)) => bursts(source, burst),
        (Some(_), Some(burst)) => {
            Err(source.at(burst.span(), "loss is independent or comes in bursts, not both"))
        }
    }
}

fn bursts(source: &SourceText<'_>, table: &Spanned<BurstTable>) -> Result<Loss, ScenarioError> {
    let BurstTable { rate, length } = *table.get_ref();
    Loss::bursts(rate, length).map_err(|error| source.at(table.span(), error.to_string()))
}

fn message_bursts(source: &SourceText<'_>, table: &Spanned<BurstTable>) -> Result<Burst, ScenarioError> {
    match bursts(source, table)? {
        Loss::GilbertElliott { p_good_to_bad, p_bad_to_good, loss_bad, .. } => {
            Ok(Burst { start: p_good_to_bad, end: p_bad_to_good, loss: loss_bad })
        }
        _ => Err(source.at(table.span(), "gives no bursts")),
    }
}

pub(super) fn probability(source: &SourceText<'_>, value: &Spanned<f64>) -> Result<f64, ScenarioError> {
    match *value.get_ref() {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        share => Err(source.at(value.span(), format!("{share} is not a probability from 0 to 1"))),
    }
}
