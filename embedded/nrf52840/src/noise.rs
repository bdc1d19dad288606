//! The hardware random number generator with continuous health tests: its output is either tested or an
//! error.

use core::num::NonZeroU32;

use embassy_nrf::mode::Blocking;
use embassy_nrf::pac;
use embassy_nrf::rng::Rng;
use embassy_time::{Duration, Instant};
use rand_core::{CryptoRng, Error, RngCore};

use crate::entropy::{HealthTest, START_UP_SAMPLES, Unhealthy};
use crate::hooks;

/// Time limit for one byte; 120 µs is usual.
const PATIENCE: Duration = Duration::from_millis(10);

/// The generator. It answers after 120 µs per byte; before the first ones, and after every failure, the
/// start-up test takes another 130 ms.
pub struct Noise {
    /// Holds the peripheral, and set it up.
    _rng: Rng<'static, Blocking>,
    health: HealthTest,
    started_up: bool,
}

impl Noise {
    /// Corrects the bias, as the data sheet recommends for cryptography.
    #[must_use]
    pub fn new(rng: Rng<'static, Blocking>) -> Self {
        rng.set_bias_correction(true);
        Self { _rng: rng, health: HealthTest::default(), started_up: false }
    }

    fn draw(&mut self, bytes: &mut [u8]) -> Result<(), Unhealthy> {
        pac::RNG.tasks_start().write_value(1);
        let drawn = self.tested(bytes);
        pac::RNG.tasks_stop().write_value(1);
        if drawn.is_err() {
            self.started_up = false;
            bytes.fill(0);
        }
        drawn
    }

    fn tested(&mut self, bytes: &mut [u8]) -> Result<(), Unhealthy> {
        if !self.started_up {
            self.health = HealthTest::default();
            for _ in 0..START_UP_SAMPLES {
                self.health.take(sample()?)?;
            }
            self.started_up = true;
        }
        for byte in bytes {
            *byte = sample()?;
            self.health.take(*byte)?;
        }
        Ok(())
    }
}

/// The next byte of the generator, which runs.
fn sample() -> Result<u8, Unhealthy> {
    let rng = pac::RNG;
    let begun = Instant::now();
    while rng.events_valrdy().read() == 0 {
        if begun.elapsed() > PATIENCE {
            return Err(Unhealthy::Silent);
        }
    }
    rng.events_valrdy().write_value(0);
    Ok(rng.value().read().value())
}

impl RngCore for Noise {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Restarts the board if there is no randomness, as the caller cannot do without. The node calls
    /// [`try_fill_bytes`](Self::try_fill_bytes).
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        if self.draw(bytes).is_err() {
            hooks::restart();
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.draw(bytes).map_err(|why| {
            defmt::error!("randomness fails: {}", defmt::Debug2Format(&why));
            let number = why as u32;
            NonZeroU32::MIN.saturating_add(Error::CUSTOM_START.saturating_add(number)).into()
        })
    }
}

impl CryptoRng for Noise {}
