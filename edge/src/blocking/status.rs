//! How a drone within another program is doing.

/// State of a drone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Its standing.
    pub standing: Standing,
    /// Its name, once enrolled.
    pub name: Option<String>,
    /// The group that it is in or wants to be in.
    pub group: Option<String>,
    /// Term and counter of the epoch held.
    pub epoch: Option<(u64, u64)>,
    /// D of that epoch.
    pub digest: Option<[u8; 32]>,
    /// Its slot.
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
pub enum Standing {
    /// It asks the KGC for its key.
    #[default]
    Enrolling = 0,
    /// It asks to be admitted, or is not in step with the group: it neither sends nor receives.
    Joining = 1,
    /// It is a member, in step with the group.
    Member = 2,
    /// It has left, as it was told.
    Left = 3,
    /// It was evicted.
    Evicted = 4,
    /// The KGC has revoked it: it is not admitted again under its key.
    Revoked = 5,
}
