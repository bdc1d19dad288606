//! Losses of frames on a link: none, independent, or in bursts.

use rand::{Rng, RngCore};

use super::RadioError;

/// Loss model of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// Every frame arrives.
    #[default]
    None,
    /// Every frame is lost with the same probability, whatever became of the others.
    Independent {
        /// Probability that a frame is lost.
        per_frame: f64,
    },
    /// Two states, each with its own loss; the link changes between them from frame to frame (E. N. Gilbert,
    /// *Capacity of a burst-noise channel*, Bell System Technical Journal 39, 1960; E. O. Elliott, *Estimates
    /// of error rates for codes on burst-noise channels*, Bell System Technical Journal 42, 1963). The state
    /// steps once per frame and keeps between messages.
    GilbertElliott {
        /// Probability that a good link turns bad before the next frame.
        p_good_to_bad: f64,
        /// Probability that a bad link turns good before the next frame.
        p_bad_to_good: f64,
        /// Probability that a frame is lost while the link is good.
        loss_good: f64,
        /// Probability that a frame is lost while the link is bad.
        loss_bad: f64,
    },
}

impl Loss {
    /// Losses with the same probability for every frame.
    pub fn independent(per_frame: f64) -> Result<Self, RadioError> {
        Self::Independent { per_frame }.checked()
    }

    /// A link that loses `rate` of its frames in the long run, in bursts of `burst` frames on average:
    /// everything is lost while it is bad and nothing while it is good (Gilbert's model). `rate` 0.3 and
    /// `burst` 8 is a third lost in bursts.
    pub fn bursts(rate: f64, burst: f64) -> Result<Self, RadioError> {
        if !(0.0..1.0).contains(&rate) || !burst.is_finite() || burst < 1.0 {
            return Err(RadioError::Bursts { rate, burst });
        }
        // A bad spell ends with probability r per frame, so it lasts 1/r; the bad state holds p / (p + r) of
        // the time.
        let p_bad_to_good = 1.0 / burst;
        let p_good_to_bad = p_bad_to_good * rate / (1.0 - rate);
        if p_good_to_bad > 1.0 {
            return Err(RadioError::Bursts { rate, burst });
        }
        Ok(Self::GilbertElliott { p_good_to_bad, p_bad_to_good, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// Checks that all probabilities of this loss are from 0 to 1.
    pub fn checked(self) -> Result<Self, RadioError> {
        let named: &[(&'static str, f64)] = &match self {
            Self::None => [("", 0.0); 4],
            Self::Independent { per_frame } => [("per_frame", per_frame), ("", 0.0), ("", 0.0), ("", 0.0)],
            Self::GilbertElliott { p_good_to_bad, p_bad_to_good, loss_good, loss_bad } => [
                ("p_good_to_bad", p_good_to_bad),
                ("p_bad_to_good", p_bad_to_good),
                ("loss_good", loss_good),
                ("loss_bad", loss_bad),
            ],
        };
        match named.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            Some(&(name, value)) => Err(RadioError::Probability { name, value }),
            None => Ok(self),
        }
    }

    /// Share of frames lost in the long run.
    pub fn stationary(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Independent { per_frame } => per_frame,
            Self::GilbertElliott { loss_good, loss_bad, .. } => {
                let bad = self.share_bad();
                (1.0 - bad) * loss_good + bad * loss_bad
            }
        }
    }

    /// Share of time in the bad state. A chain that never moves stays where it begins: in the good state.
    fn share_bad(&self) -> f64 {
        match *self {
            Self::GilbertElliott { p_good_to_bad, p_bad_to_good, .. }
                if p_good_to_bad + p_bad_to_good > 0.0 =>
            {
                p_good_to_bad / (p_good_to_bad + p_bad_to_good)
            }
            _ => 0.0,
        }
    }

    /// A link with this loss, in a state drawn from the long run.
    pub fn link(self, rng: &mut impl RngCore) -> LossState {
        let bad = matches!(self, Self::GilbertElliott { .. }) && happens(self.share_bad(), rng);
        LossState { loss: self, bad }
    }
}

/// A link: its loss and the state it is in. One per sender and receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossState {
    loss: Loss,
    bad: bool,
}

impl LossState {
    /// The loss model.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Returns true if the next frame is lost.
    pub fn loses(&mut self, rng: &mut impl RngCore) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent { per_frame } => happens(per_frame, rng),
            Loss::GilbertElliott { p_good_to_bad, p_bad_to_good, loss_good, loss_bad } => {
                let lost = happens(if self.bad { loss_bad } else { loss_good }, rng);
                let steps = happens(if self.bad { p_bad_to_good } else { p_good_to_bad }, rng);
                self.bad ^= steps;
                lost
            }
        }
    }

    /// Returns true if at least one of `copies` copies of each of `frames` frames arrives. The copies go out
    /// as rounds: all frames once, then all again.
    pub(super) fn receives_all(&mut self, frames: u32, copies: u32, rng: &mut impl RngCore) -> bool {
        match self.loss {
            Loss::None => true,
            // One draw instead of one per frame: a million drones receive thousands of frames each.
            Loss::Independent { per_frame } => happens(power(1.0 - power(per_frame, copies), frames), rng),
            Loss::GilbertElliott { .. } => self.receives_rounds(frames, copies, rng),
        }
    }

    fn receives_rounds(&mut self, frames: u32, copies: u32, rng: &mut impl RngCore) -> bool {
        if copies <= 1 {
            // Every frame moves the chain, also after the message is spoilt.
            return (0..frames).filter(|_| self.loses(rng)).count() == 0;
        }
        let mut missing: Vec<bool> = vec![true; frames as usize];
        for _ in 0..copies {
            for frame in &mut missing {
                *frame &= self.loses(rng);
            }
        }
        !missing.contains(&true)
    }
}

/// Draws an event of this probability.
pub(crate) fn happens(probability: f64, rng: &mut impl RngCore) -> bool {
    // `gen_bool` refuses values outside 0 to 1, which rounding could produce.
    rng.gen_bool(probability.clamp(0.0, 1.0))
}

/// `base` to the `exponent`, by squaring: `f64::powi` may round differently from machine to machine, and a
/// trace must not.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut square, mut left, mut product) = (base, exponent, 1.0);
    while left > 0 {
        if left & 1 == 1 {
            product *= square;
        }
        square *= square;
        left >>= 1;
    }
    product
}
