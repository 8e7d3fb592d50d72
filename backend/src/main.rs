//! The binary: reads the command line, starts logging and the runtime, and hands over to `backend::cli`.

use std::io::Write;
use std::process::ExitCode;

use backend::cli::{Cli, Quit};
use clap::Parser;
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

/// A third of the server's time went into the system's allocator: JSON is many small pieces.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("COUNTERSIGN_LOG").unwrap_or_else(|_| EnvFilter::new(cli.log_filter()));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::env::var("COUNTERSIGN_LOG_FORMAT").is_ok_and(|format| format == "json") {
        logs.json().init();
    } else {
        logs.init();
    }
    let outcome = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from);
    match outcome.and_then(|runtime| runtime.block_on(cli.run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(quit) = error.downcast_ref::<Quit>() {
                // A reader that has gone away is no failure.
                let _ = writeln!(std::io::stderr(), "{quit}");
                ExitCode::from(quit.exit as u8)
            } else {
                tracing::error!("{error:#}");
                ExitCode::FAILURE
            }
        }
    }
}
