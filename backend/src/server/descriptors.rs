//! The limit of open files and connections of the process.

/// The assumed limit of open files if the system does not tell.
const UNKNOWN: u64 = 8192;
/// The maximum default number of connections; more only if the settings demand it.
const MAX_CONNECTIONS: usize = 32_768;

/// Raises the soft limit of open files to the hard limit. The usual soft limit is too low for thousands of connections.
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

/// Returns the number of connections that leaves enough files for the database and outgoing calls.
pub(super) fn room_for_connections() -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let limit = None;
    let files = usize::try_from(limit.unwrap_or(UNKNOWN)).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 8 * 7).clamp(16, MAX_CONNECTIONS)
}
