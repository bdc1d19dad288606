//! Radios by name.

use quiver_world::radio::{Preset, RadioError, SpreadingFactor};

#[test]
fn every_preset_is_found_by_its_name() {
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse(), Ok(preset));
        assert_eq!(preset.profile().preset(), preset);
    }
}

#[test]
fn unknown_radio_is_refused_with_the_known_ones() {
    let error = "zigbee".parse::<Preset>().unwrap_err();
    assert_eq!(error, RadioError::UnknownPreset { given: "zigbee".to_owned() });
    assert!(error.to_string().contains("802.15.4"), "{error}");
    for name in ["lora-sf6", "lora-sf13", "lora", "BLE", ""] {
        assert!(name.parse::<Preset>().is_err(), "{name}");
    }
}

#[test]
fn spreading_factors_end_at_seven_and_twelve() {
    assert_eq!(SpreadingFactor::new(6), Err(RadioError::SpreadingFactor { given: 6 }));
    assert_eq!(SpreadingFactor::new(13), Err(RadioError::SpreadingFactor { given: 13 }));
    assert_eq!(SpreadingFactor::new(12).map(SpreadingFactor::bits), Ok(12));
}
