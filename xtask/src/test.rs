//! Runs every test: unit and property tests, both databases, real sockets, a real Chromium, a killed server.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::build;
use crate::postgres::Cluster;
use crate::process::{built, cargo, output, program, run as run_command, say};
use crate::setup;

/// The folder of Linux whose files are kept in memory.
const MEMORY: &str = "/dev/shm";
/// The free space that the tests need for their files, with room to spare, in KiB.
const ROOM: u64 = 6 << 20;
/// The environment variable that sets how many tests nextest runs at once.
const THREADS: &str = "NEXTEST_TEST_THREADS";

/// Builds what the tests need, and runs them.
pub fn run(full: bool, args: &[String]) -> Result<()> {
    set_up()?;
    beside_console(build)?;
    run_built(full, args)
}

/// Installs what the tests need.
pub fn set_up() -> Result<()> {
    setup::subcommand("cargo-nextest", "cargo-nextest")?;
    setup::browser()
}

/// Builds the console that the tests open, in parallel with `work`: the bundle of a release, except that its names have
/// no hashes.
pub fn beside_console(work: impl FnOnce() -> Result<()>) -> Result<()> {
    build::console_beside(build::RELEASE, build::Names::Plain, work)
}

/// Builds the server and the tests. Together, they have the same features, so that nothing is compiled twice.
pub fn build() -> Result<()> {
    say("Building the server and the tests");
    run_command(cargo().args(["build", "--workspace", "--bin", "countersign", "--tests"]))
}

/// Starts a PostgreSQL unless the environment names one, and runs the tests, which are built.
pub fn run_built(full: bool, args: &[String]) -> Result<()> {
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
        // Many tests mostly wait for a timer, a browser, or a server that starts.
        tests.env(THREADS, (2 * cores.get()).to_string());
    }
    if full {
        tests.env("COUNTERSIGN_TEST_FULL", "1");
    }
    run_command(&mut tests)
}

/// The folder for the tests' files: `TMPDIR` if it is set, else [`MEMORY`] if it has room, else the temporary folder.
/// No test crashes the machine, so memory will do.
fn scratch() -> PathBuf {
    let free = || output(program("df").args(["-Pk", MEMORY]))?.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok();
    if std::env::var_os("TMPDIR").is_none() && free().is_some_and(|free: u64| free >= ROOM) {
        Path::new(MEMORY).to_path_buf()
    } else {
        std::env::temp_dir()
    }
}
