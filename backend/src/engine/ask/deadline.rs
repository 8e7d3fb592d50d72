//! When people are warned that a deadline is near.

use std::time::Duration;

use shared::time::Timestamp;

/// A shorter time has no warning.
const SHORT: Duration = Duration::from_mins(5);

/// When people are warned of a deadline: before it by a tenth of the time, but by a minute at least and an hour at
/// most. Nobody is warned of a time so short that they have just been told.
pub(super) fn warning(from: Timestamp, deadline: Timestamp) -> Option<Timestamp> {
    let time = deadline.since(from);
    if time < SHORT {
        return None;
    }
    let before = (time / 10).clamp(Duration::from_mins(1), Duration::from_hours(1));
    Some(from.after(time.saturating_sub(before)))
}
