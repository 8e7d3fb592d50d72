//! `countersign serve`: runs the server until it is told to stop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::print;
use crate::app::App;
use crate::config::{ServeArgs, Settings};
use crate::server;

/// Runs `countersign serve`. Fails if the server cannot start, if one of its background tasks ends, or at a second stop
/// signal.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    server::raise_limit();
    let settings = Settings::resolve(args)?;
    let admin_password = std::env::var("COUNTERSIGN_ADMIN_PASSWORD").ok().filter(|password| !password.is_empty());
    let app = App::start(settings, admin_password).await?;
    let address = app.address();
    print(&format!("listening on http://{address}"));
    if !app.links().is_empty() {
        print("");
        print("Each of these links logs in once, within a day:");
        let opened = reachable(address);
        for (username, secret) in app.links() {
            print(&format!("  {username:<8} http://{opened}/login#token={secret}"));
        }
        print("");
    }
    tokio::select! {
        () = stop_signal() => {}
        task = app.failed() => {
            // A server without one of its background tasks is worse than one that is restarted.
            anyhow::bail!("the {task} stopped unexpectedly, so the server shuts down; see its log, then restart it");
        }
    }
    tracing::info!("stopping: work in progress is finished or released; a second signal ends the process at once");
    tokio::select! {
        () = app.stop() => Ok(()),
        () = stop_signal() => anyhow::bail!("ended by a second signal; everything that was acknowledged is on disk"),
    }
}

/// Returns the address at which a browser on this machine opens the console. Browsers do not open `0.0.0.0` or `[::]`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Waits for Ctrl+C, or for the stop signal of a service manager.
pub(super) async fn stop_signal() {
    tokio::select! {
        () = interrupted() => {}
        () = terminated() => {}
    }
}

/// Waits for Ctrl+C. A process that cannot listen for signals has to be killed, which loses nothing.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits for SIGTERM.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            terminate.recv().await;
            return;
        }
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_server_on_all_addresses_lead_to_this_machine() {
        for (listens, opened) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("10.0.0.7:80", "10.0.0.7:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(reachable(listens.parse().expect("an address")).to_string(), opened);
        }
    }
}
