//! All operations succeed, and their names are those of the ratios.

use quiver_commonware::contenders;
use quiver_commonware::verdict::RATIOS;

#[test]
fn every_contender_encrypts_decrypts_and_combines() {
    for mut contender in contenders().unwrap() {
        let done = [(contender.encrypt)(), (contender.decrypt)(), (contender.combine)()];
        assert_eq!(done, [true; 3], "{}", contender.name);
    }
}

#[test]
fn every_ratio_is_between_contenders() {
    let names: Vec<_> = contenders().unwrap().into_iter().map(|contender| contender.name).collect();
    for ratio in RATIOS {
        assert!([ratio.whole, ratio.part].iter().all(|name| names.contains(name)), "{ratio:?}");
    }
}
