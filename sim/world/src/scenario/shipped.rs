//! The scenarios that come with Quiver.

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every shipped scenario, in alphabetical order.
        pub const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*];
    };
}

scenarios![
    "captured_drone_keeps_listening",
    "churn_over_bluetooth",
    "clock_jumps",
    "deltas_lost_on_a_lora_link",
    "disk_full_at_the_kgc",
    "drones_flying_into_and_out_of_a_fence",
    "drones_flying_out_of_range",
    "flapping_drone",
    "kgc_crashes_between_rounds",
    "leader_lost_during_rekey",
    "leader_lost_for_good",
    "lying_kgc_is_named_and_routed_around",
    "mass_join",
    "mass_leave",
    "mavlink",
    "orders_wait_for_their_phase",
    "partition_then_merge",
    "quorum_split_in_two",
    "thirty_percent_burst_loss",
    "two_drones_race_for_one_token",
    "two_hops",
    "two_leaders_at_once",
    "usurper_without_an_identity",
];

/// The text of the shipped scenario of this name.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
