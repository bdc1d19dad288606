//! The hardware's noise: the first seed, and fresh ones for as long as the board runs.

use core::sync::atomic::{AtomicU32, Ordering};

use embassy_nrf::mode::Async;
use embassy_nrf::rng::Rng;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embassy_time::{Duration, Timer, with_timeout};
use zeroize::{Zeroize, Zeroizing};

use crate::board;
use crate::entropy::{Collector, HealthTest, LATER_SAMPLES, Reseed, SEED_LEN, START_UP_SAMPLES, Unhealthy};

/// Samples that are drawn at a time: 64 take 8 ms on average.
const DRAW: usize = 64;

/// After which a draw counts as failed.
const PATIENCE: Duration = Duration::from_millis(500);

/// From seed to seed.
const PERIOD: Duration = Duration::from_secs(300);

static FRESH: Signal<CriticalSectionRawMutex, [u8; SEED_LEN]> = Signal::new();
static ALARMS: AtomicU32 = AtomicU32::new(0);

/// How often the noise failed its tests since the start.
#[must_use]
pub fn alarms() -> u32 {
    ALARMS.load(Ordering::Relaxed)
}

/// The fresh seeds, for [`Random`](crate::entropy::Random).
#[derive(Clone, Copy, Debug)]
pub struct Fresh;

impl Reseed for Fresh {
    fn take(&self) -> Option<[u8; SEED_LEN]> {
        FRESH.try_take()
    }
}

/// The hardware's generator and its tests.
pub struct Noise {
    rng: Rng<'static, Async>,
    health: HealthTest,
}

impl Noise {
    /// Corrects the bias, as the data sheet recommends for cryptography.
    #[must_use]
    pub fn new(rng: Rng<'static, Async>) -> Self {
        rng.set_bias_correction(true);
        Self { rng, health: HealthTest::default() }
    }

    /// The first seed, from as many samples as the start-up test wants; takes about 130 ms.
    ///
    /// # Errors
    /// What is wrong with the noise. It is counted, too.
    pub async fn first(&mut self) -> Result<Zeroizing<[u8; SEED_LEN]>, Unhealthy> {
        self.collect(START_UP_SAMPLES).await
    }

    /// Offers a fresh seed every five minutes, until the noise fails its tests: then the last good seed stays.
    pub async fn renew(mut self) {
        loop {
            Timer::after(PERIOD).await;
            let Ok(seed) = self.collect(LATER_SAMPLES).await else { return };
            FRESH.signal(*seed);
        }
    }

    async fn collect(&mut self, samples: usize) -> Result<Zeroizing<[u8; SEED_LEN]>, Unhealthy> {
        let seed = self.draw(samples).await;
        if seed.is_err() {
            let _ = ALARMS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        }
        seed
    }

    async fn draw(&mut self, samples: usize) -> Result<Zeroizing<[u8; SEED_LEN]>, Unhealthy> {
        let mut collector = Collector::new(&mut self.health, &board::device_id());
        let mut drawn = [0; DRAW];
        for _ in 0..samples.div_ceil(DRAW) {
            with_timeout(PATIENCE, self.rng.fill_bytes(&mut drawn)).await.map_err(|_| Unhealthy::Silent)?;
            collector.take(&drawn)?;
        }
        drawn.zeroize();
        Ok(collector.finish())
    }
}
