//! Losses in the long run against what they are set to.

use quiver_world::radio::{Loss, RadioError};

use super::rng;

const FRAMES: u32 = 400_000;

/// Share of lost frames and mean length of a run of losses.
fn observe(loss: Loss, seed: u64) -> (f64, f64) {
    let mut random = rng(seed);
    let mut link = loss.link(&mut random);
    let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
    for _ in 0..FRAMES {
        let now = link.loses(&mut random);
        lost += u32::from(now);
        bursts += u32::from(now && !before);
        before = now;
    }
    (f64::from(lost) / f64::from(FRAMES), f64::from(lost) / f64::from(bursts.max(1)))
}

/// Six standard deviations of the share of time a two-state chain spends in its bad state: its variance is
/// that of coin flips times (1 + λ) / (1 − λ), λ = 1 − p − r.
fn six_sigma(p: f64, r: f64) -> f64 {
    let bad = p / (p + r);
    let lambda = 1.0 - p - r;
    6.0 * (bad * (1.0 - bad) * (1.0 + lambda) / (1.0 - lambda) / f64::from(FRAMES)).sqrt()
}

#[test]
fn gilbert_elliott_loses_its_stationary_share() {
    for (p, r, good, bad) in
        [(0.01, 0.1, 0.0, 1.0), (0.2, 0.3, 0.01, 0.7), (0.001, 0.02, 0.05, 0.9), (0.9, 0.9, 0.0, 0.5)]
    {
        let loss =
            Loss::GilbertElliott { p_good_to_bad: p, p_bad_to_good: r, loss_good: good, loss_bad: bad };
        let (share, _) = observe(loss, 11);
        // The state contributes at most its own spread times the difference of the losses, the draws at most
        // a coin flip's.
        let bound = six_sigma(p, r) * (bad - good) + 6.0 * 0.5 / f64::from(FRAMES).sqrt();
        assert!(
            (share - loss.stationary()).abs() < bound,
            "{loss:?}: {share} instead of {}",
            loss.stationary()
        );
    }
}

#[test]
fn thirty_percent_come_in_bursts_of_the_length_asked_for() {
    let loss = Loss::bursts(0.3, 8.0).unwrap();
    assert!((loss.stationary() - 0.3).abs() < 1e-12);
    let (share, burst) = observe(loss, 5);
    assert!((share - 0.3).abs() < six_sigma(0.3 / 0.7 / 8.0, 0.125), "{share}");
    // 15,000 bursts of geometric length with mean 8 and deviation 7.5: six sigma are 0.37.
    assert!((burst - 8.0).abs() < 0.37, "{burst}");
}

#[test]
fn independent_losses_come_at_their_rate_and_do_not_cluster() {
    let (share, burst) = observe(Loss::independent(0.3).unwrap(), 6);
    assert!((share - 0.3).abs() < 6.0 * (0.21 / f64::from(FRAMES)).sqrt(), "{share}");
    // Runs of independent losses last 1 / (1 − 0.3) on average.
    assert!((burst - 1.0 / 0.7).abs() < 0.02, "{burst}");
}

#[test]
fn hearing_a_broadcast_whole_agrees_with_hearing_it_frame_by_frame() {
    let radio = quiver_world::radio::Preset::Ieee802154.profile();
    let loss = Loss::independent(0.02).unwrap();
    let (frames, messages) = (20, 40_000);
    let mut random = rng(8);
    let mut link = loss.link(&mut random);
    let whole = (0..messages).filter(|_| radio.receive(frames, &mut link, &mut random)).count();
    let single =
        (0..messages).filter(|_| (0..frames).filter(|_| link.loses(&mut random)).count() == 0).count();
    // Two samples of 40,000 coin flips: six sigma of their difference are at most 0.0212.
    assert!((whole as f64 - single as f64).abs() / f64::from(messages) < 0.0212, "{whole} and {single}");
}

#[test]
fn a_lost_frame_spoils_a_broadcast_and_moves_the_link_on_all_the_same() {
    // A link that alternates strictly: good, bad, good, bad …; whichever it starts with, two frames never
    // both arrive.
    let loss = Loss::GilbertElliott { p_good_to_bad: 1.0, p_bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    let radio = quiver_world::radio::Preset::Ideal.profile();
    let mut random = rng(9);
    let mut link = loss.link(&mut random);
    let first_lost = link.clone().loses(&mut random);
    assert!(!radio.receive(2, &mut link, &mut random));
    assert_eq!(link.clone().loses(&mut random), first_lost, "two frames bring it back to where it was");
    assert!(!radio.receive(3, &mut link, &mut random));
    assert_eq!(link.loses(&mut random), !first_lost, "three do not");
}

#[test]
fn impossible_losses_are_refused_by_name() {
    assert_eq!(Loss::independent(1.5), Err(RadioError::Probability { name: "per_frame", value: 1.5 }));
    let nan =
        Loss::GilbertElliott { p_good_to_bad: 0.1, p_bad_to_good: 0.1, loss_good: 0.0, loss_bad: f64::NAN };
    assert!(matches!(nan.checked(), Err(RadioError::Probability { name: "loss_bad", .. })));
    // Losing 90 % in bursts of one frame would need two bad frames in a row.
    assert!(Loss::bursts(0.9, 1.0).is_err());
    assert!(Loss::bursts(1.0, 5.0).is_err());
    assert!(Loss::bursts(0.1, 0.5).is_err());
    assert!(Loss::bursts(0.5, 1.0).is_ok());
}
