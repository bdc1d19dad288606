//! The envelope phase: sends ABE orders and checks that exactly the drones with fitting attributes open them.

use std::collections::BTreeMap;

use quiver_ainq::Suite;
use quiver_envelope::EnvelopeEvent;
use quiver_machine::Either;

use super::{AbeAuthority, EnvelopeNodeEvent, ORDERS, Order, OrderError};
use crate::Invariant;
use crate::feature_part::AnyFeatureCommand;
use crate::message_number;
use crate::rng_stream::{self, RngStream};
use crate::run::Phase;
use crate::run::phases::Phases;

/// Edges that opened an envelope, and those whose attributes do not fit.
#[derive(Debug, Default)]
pub(crate) struct OpenedEnvelopes {
    /// Number of openings by order and edge.
    opened: BTreeMap<(u32, u32), u32>,
    unfit: u32,
    /// Opened envelopes that were never sent, or are unsigned.
    strange: u32,
}

impl OpenedEnvelopes {
    pub(crate) fn note(&mut self, edge: u32, EnvelopeNodeEvent::Envelope(event): &EnvelopeNodeEvent) {
        match event {
            EnvelopeEvent::Opened { data, author: Some(_), .. } => match message_number(data) {
                Some(order) => *self.opened.entry((order, edge)).or_default() += 1,
                None => self.strange += 1,
            },
            EnvelopeEvent::Opened { author: None, .. } => self.strange += 1,
            EnvelopeEvent::NotSatisfied { .. } => self.unfit += 1,
            EnvelopeEvent::TooLarge { .. } | EnvelopeEvent::Sent { .. } | EnvelopeEvent::NotSent(_) => {}
        }
    }

    fn openers(&self, order: u32) -> impl Iterator<Item = (u32, u32)> {
        self.opened.range((order, 0)..=(order, u32::MAX)).map(|((_, edge), times)| (*edge, *times))
    }

    fn openings(&self, order: u32) -> u32 {
        u32::try_from(self.openers(order).count()).unwrap_or(u32::MAX)
    }
}

impl<S: Suite> Phases<'_, S> {
    pub(crate) fn seal(&mut self) -> bool {
        if !self.plan.envelopes {
            return true;
        }
        match self.hand_out() {
            Err(error) => {
                self.violate(Invariant::SealedToFew, &Phase::Envelope, error.to_string());
                false
            }
            Ok(authority) => (0..).zip(ORDERS).all(|(number, order)| self.order(number, &order, &authority)),
        }
    }

    /// Hands every drone the key of its kind, and the leader the parameters.
    fn hand_out(&mut self) -> Result<AbeAuthority, OrderError> {
        let authority =
            AbeAuthority::found(&mut rng_stream::generator(self.plan.seed, RngStream::AbeAuthority))?;
        for (kind, keys) in authority.kinds() {
            let edges = (0..self.world.edge_count()).filter(|edge| edge % 4 == kind);
            self.world.command_edges(edges, &Either::Right(AnyFeatureCommand::new(keys)), &mut self.arrivals);
        }
        if let Some(public) = authority.public() {
            self.world.command_leader(0, Either::Right(AnyFeatureCommand::new(public)), &mut self.arrivals);
        }
        Ok(authority)
    }

    fn order(&mut self, number: u32, order: &Order, authority: &AbeAuthority) -> bool {
        let mark = self.mark();
        let command = match authority.seal(order, number.to_be_bytes().to_vec()) {
            Ok(command) => command,
            Err(error) => {
                self.violate(Invariant::SealedToFew, &Phase::Envelope, error.to_string());
                return false;
            }
        };
        let audience: Vec<u32> = self.members.iter().copied().filter(|edge| order.is_for(*edge)).collect();
        let wanted = u32::try_from(audience.len()).unwrap_or(u32::MAX);
        self.world.command_leader(0, Either::Right(AnyFeatureCommand::new(command)), &mut self.arrivals);
        let done =
            self.until(Phase::Envelope, wanted, |phases| phases.arrivals.envelopes_opened.openings(number));
        // The others get their time to open it as well.
        self.world.run_for(self.pace.patience() / 100, &mut self.arrivals);
        self.operate(Phase::Envelope, format!("to {wanted}"), &mark, &audience);
        done && self.check_openers(number, &audience)
    }

    fn check_openers(&mut self, number: u32, audience: &[u32]) -> bool {
        let envelopes_opened = &self.arrivals.envelopes_opened;
        let opened: BTreeMap<u32, u32> = envelopes_opened.openers(number).collect();
        let members = self.members.iter().filter(|edge| opened.contains_key(edge)).count();
        let missing = audience.iter().filter(|edge| opened.get(edge) != Some(&1)).count();
        self.checks += self.members.len() as u64;
        let mut wrong = Vec::new();
        if missing > 0 {
            wrong.push(format!("{missing} whose attributes fit did not open order {number} exactly once"));
        }
        if members > audience.len() {
            wrong.push(format!(
                "{} whose attributes do not fit opened order {number}",
                members - audience.len()
            ));
        }
        // A drone outside the group that receives the gossip may report it, too.
        if number == 0 && (envelopes_opened.unfit as usize) < self.members.len() - audience.len() {
            wrong.push(format!("only {} know that order 0 is for others", envelopes_opened.unfit));
        }
        if envelopes_opened.strange > 0 {
            wrong.push(format!("{} envelopes opened that nobody sealed", envelopes_opened.strange));
        }
        let held = wrong.is_empty();
        wrong.into_iter().for_each(|detail| self.violate(Invariant::SealedToFew, &Phase::Envelope, detail));
        held
    }
}
