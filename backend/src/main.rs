//! The binary: reads the command line, starts logging and the runtime, and calls `backend::cli`.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use backend::cli::{Cli, Quit, print_error};
use clap::Parser;
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

/// Replaces the system's allocator, which took a third of the server's time: JSON causes many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long remaining blocking work may take after the command has ended.
const END_LIMIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = match cli.log_filter(std::env::var("COUNTERSIGN_LOG").ok().as_deref()) {
        Ok(filter) => EnvFilter::new(filter),
        Err(error) => {
            print_error(&error);
            return ExitCode::FAILURE;
        }
    };
    // Escape sequences for colours would be noise in a file or a journal.
    let coloured =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no_colour| no_colour.is_empty());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(coloured).with_writer(std::io::stderr);
    if std::env::var("COUNTERSIGN_LOG_FORMAT").is_ok_and(|format| format == "json") {
        logs.json().init();
    } else {
        logs.init();
    }
    let is_server = cli.is_server();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from);
    let outcome = runtime.and_then(|runtime| {
        let outcome = runtime.block_on(cli.run());
        // A blocked thread, such as one that waits for a disk, must not keep the process alive.
        runtime.shutdown_timeout(END_LIMIT);
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let quit = error.downcast_ref::<Quit>();
            let message = quit.map_or_else(|| message_of(&error), ToString::to_string);
            if is_server {
                tracing::error!("{message}");
            } else {
                print_error(&message);
            }
            quit.map_or(ExitCode::FAILURE, |quit| ExitCode::from(quit.exit as u8))
        }
    }
}

/// Formats an error with its causes. Many errors repeat their cause; it is printed once.
fn message_of(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        match told.as_str() {
            "" => cause,
            told if told.contains(&cause) => told.to_owned(),
            told => format!("{told}: {cause}"),
        }
    })
}
