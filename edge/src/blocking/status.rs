//! Status of a drone within another program.

/// State of a drone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Standing of the drone.
    pub standing: MembershipStanding,
    /// Name of the drone, once enrolled.
    pub name: Option<String>,
    /// The group that it is in or wants to be in.
    pub group: Option<String>,
    /// Term and counter of the epoch held.
    pub epoch: Option<(u64, u64)>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Slot of the drone.
    pub slot: Option<u32>,
    /// End of the key's validity, seconds since 1970.
    pub valid_until: Option<u64>,
    /// Leaders and deputies that it has a connection with.
    pub leaders: u32,
    /// Messages that were dropped because the application took none for too long.
    pub dropped: u64,
}

/// Standing of a drone in its group. The numbers do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum MembershipStanding {
    /// The drone asks the KGC for its key.
    #[default]
    Enrolling = 0,
    /// The drone asks to be admitted, or is not in step with the group: it neither sends nor receives.
    Joining = 1,
    /// The drone is a member, in step with the group.
    Member = 2,
    /// The drone has left, as it was told.
    Left = 3,
    /// The drone was evicted.
    Evicted = 4,
    /// The KGC has revoked it: it is not admitted again under its key.
    Revoked = 5,
}
