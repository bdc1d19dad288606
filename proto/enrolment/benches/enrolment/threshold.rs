//! Enrolments with quorums.

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;
use quiver_ainq::{Purpose, QuorumStatement};
use quiver_enrolment::MasterShare;
use quiver_quorum::{QuorumParameters, dealer};

use super::measure;

pub(super) fn measure_quorums(group: &mut BenchmarkGroup<'_, WallTime>) {
    for (name, members, threshold) in [("2 of 3", 3, 2), ("3 of 5", 5, 3), ("6 of 10", 10, 6)] {
        let parameters = QuorumParameters::new(members, threshold).unwrap();
        measure(group, name, &move |master, deployment, rng| {
            let (shares, public) = dealer::split(&master, parameters, rng).unwrap();
            let signature = master.sign(deployment, Purpose::Quorum, &public.encode(), rng);
            let statement = QuorumStatement::new(public.encode(), signature).unwrap();
            let key = |share| MasterShare::new(deployment, share, &statement).unwrap().into();
            shares.into_iter().map(key).collect()
        });
    }
}
