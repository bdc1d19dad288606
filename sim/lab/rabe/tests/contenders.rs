//! All operations succeed, and their names are those of the ratios.

use quiver_rabe::AbeContender;
use quiver_rabe::verdict::{MANY, RATIOS};

#[test]
fn every_contender_generates_encrypts_and_decrypts() {
    for attributes in [1, 3] {
        for mut contender in AbeContender::all(attributes).unwrap() {
            let done = [(contender.generate)(), (contender.encrypt)(), (contender.decrypt)()];
            assert_eq!(done, [true; 3], "{} with {attributes}", contender.name);
        }
    }
}

#[test]
fn every_ratio_is_between_contenders() {
    let names: Vec<String> =
        AbeContender::all(1).unwrap().into_iter().map(|contender| contender.name).collect();
    for ratio in RATIOS {
        for (name, attributes) in [ratio.whole, ratio.part] {
            assert!(names.iter().any(|known| known == name), "{name}");
            assert!([1, MANY].contains(&attributes));
        }
    }
}
