//! `countersign serve`: the server, until it is told to stop.

use super::print;
use crate::app::App;
use crate::config::{ServeArgs, Settings};
use crate::server;

/// Serves until the process is told to stop.
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
            // What is half alive is worse than what is started again.
            anyhow::bail!("the {task} stopped unexpectedly, so the server shuts down; its log says why. Start it again");
        }
    }
    tracing::info!("stopping: what is under way is finished or given back; a second signal ends the process at once");
    tokio::select! {
        () = app.stop() => Ok(()),
        () = stop_signal() => anyhow::bail!("ended at once by a second signal; what was acknowledged is on disk"),
    }
}

/// Ctrl+C, or what service managers send.
pub(super) async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Where signals cannot be listened to, the process ends by being killed, which loses nothing.
    let _ = interrupt.await;
}
