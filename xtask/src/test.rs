//! Running every test: unit and property tests, both databases, real sockets, a real Chromium, a killed server.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::build;
use crate::postgres::Cluster;
use crate::process::{built, cargo, output, program, run as run_command, say};
use crate::setup;

/// Memory that looks like a folder.
const MEMORY: &str = "/dev/shm";
/// What the tests write at once at most, in KiB, with room to spare.
const ROOM: u64 = 6 << 20;
/// How many tests run at once, for nextest.
const THREADS: &str = "NEXTEST_TEST_THREADS";

/// Builds what the tests run, starts a PostgreSQL for them where none is named, and runs them.
pub fn run(full: bool, args: &[String]) -> Result<()> {
    setup::subcommand("cargo-nextest", "cargo-nextest")?;
    setup::browser()?;
    // What people get: the bundle of a release, only its names without hashes.
    build::console(build::RELEASE, build::Names::Plain)?;
    say("Building the server and the tests");
    // Together with the tests, so that both have the same features: nothing is compiled twice.
    run_command(cargo().args(["build", "--workspace", "--bin", "countersign", "--tests"]))?;
    let scratch = scratch();
    let cluster = if std::env::var_os("COUNTERSIGN_TEST_POSTGRES").is_none() {
        say("Starting a PostgreSQL for the tests");
        Some(Cluster::start(&scratch)?)
    } else {
        None
    };
    say(&format!("Running the tests, with their files in {}", scratch.display()));
    let mut tests = cargo();
    tests.args(["nextest", "run", "--workspace"]).args(args);
    tests.env("TMPDIR", &scratch).env("COUNTERSIGN_BIN", built("debug", "countersign"));
    if let Some(cluster) = &cluster {
        tests.env("COUNTERSIGN_TEST_POSTGRES", cluster.url());
    }
    if std::env::var_os(THREADS).is_none()
        && let Ok(cores) = std::thread::available_parallelism()
    {
        // Many tests mostly wait: for a timer, a browser, a server that starts.
        tests.env(THREADS, (2 * cores.get()).to_string());
    }
    if full {
        tests.env("COUNTERSIGN_TEST_FULL", "1");
    }
    run_command(&mut tests)
}

/// Where the tests write: memory where it has room, since no test takes the power away. Who names a folder gets it.
fn scratch() -> PathBuf {
    let free = || output(program("df").args(["-Pk", MEMORY]))?.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok();
    if std::env::var_os("TMPDIR").is_none() && free().is_some_and(|free: u64| free >= ROOM) {
        Path::new(MEMORY).to_path_buf()
    } else {
        std::env::temp_dir()
    }
}
