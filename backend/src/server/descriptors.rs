//! The limit of open files and connections of the process.

/// Where the system does not say how many.
const UNKNOWN: u64 = 8192;
/// More connections than this are accepted only where the settings ask for them.
const MOST: usize = 32_768;

/// Raises the limit of open files to what the system allows this process: the usual one is meant for programs that do
/// not serve thousands of connections.
pub fn raise_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if current != maximum
            && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        {
            tracing::warn!(%error, ?current, ?maximum, "the limit of open files cannot be raised");
        }
    }
}

/// How many connections may be open, so that enough is left for the database, files and calls.
pub(super) fn room_for_connections() -> usize {
    let files = usize::try_from(limit()).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 8 * 7).clamp(16, MOST)
}

#[cfg(unix)]
fn limit() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(UNKNOWN)
}

#[cfg(not(unix))]
fn limit() -> u64 {
    UNKNOWN
}
