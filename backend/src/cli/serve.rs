//! `countersign serve`: runs the server until it is told to stop.

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
    let address = format!("http://{}", app.address());
    print(&format!("listening on {address}"));
    if !app.links().is_empty() {
        print("");
        print("Each of these links logs in once, within a day:");
        for (username, secret) in app.links() {
            print(&format!("  {username:<8} {address}/login#token={secret}"));
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
