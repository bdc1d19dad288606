//! The command line of an edge: what is typed wrong is named, with what is right.

use quiver_service_testing::TestDeployment;

#[test]
fn enrol_is_spelt_in_one_way_and_the_other_names_it() {
    let bench = TestDeployment::new();
    bench.refused("edge", &["enroll", "-d", "one"], 2, &["'enroll'", "similar", "'enrol'"]);
}
