//! Attacks of a hostile gateway on messages: each as often as any other, in a random order with a fixed seed.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Attack on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Drop,
    Repeat,
    Alter,
    Replay,
    Invent,
}

/// Victim of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Board,
    Leader,
}

/// Number of times that each attack was made.
pub(crate) type Deeds = BTreeMap<(Victim, Deed), usize>;

/// Returns true if each deed was done so often to either side.
pub(crate) fn each_done(deeds: &Deeds, times: usize) -> bool {
    let of = |victim, deed| deeds.get(&(victim, deed)).is_some_and(|done| *done >= times);
    [Deed::Drop, Deed::Repeat, Deed::Alter, Deed::Replay, Deed::Invent]
        .into_iter()
        .all(|deed| of(Victim::Board, deed) && of(Victim::Leader, deed))
}

/// Cards that are dealt in an order of chance, all of them before any comes again.
pub(crate) struct Deck<T> {
    cards: Vec<T>,
    dealt: usize,
    dice: StdRng,
}

impl<T: Copy> Deck<T> {
    pub(crate) fn new(cards: &[T], seed: u64) -> Self {
        Self { cards: cards.to_vec(), dealt: 0, dice: StdRng::seed_from_u64(seed) }
    }

    pub(crate) fn deal(&mut self) -> T {
        if self.dealt == 0 {
            self.cards.shuffle(&mut self.dice);
        }
        let card = self.cards[self.dealt];
        self.dealt = (self.dealt + 1) % self.cards.len();
        card
    }
}

/// Fates of a message; some of them pass, so that there is something to attack.
pub(crate) const FATES: [Option<Deed>; 7] =
    [Some(Deed::Drop), Some(Deed::Repeat), Some(Deed::Alter), Some(Deed::Replay), None, None, None];
