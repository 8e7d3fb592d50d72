//! Running every test: unit and property tests, both databases, real sockets, a real Chromium, a killed server.

use anyhow::Result;

use crate::build;
use crate::postgres::Cluster;
use crate::process::{cargo, run as run_command, say, target};
use crate::setup;

/// Builds what the tests run, starts a PostgreSQL for them, and runs them.
pub fn run(args: &[String]) -> Result<()> {
    setup::subcommand("cargo-nextest", "cargo-nextest")?;
    setup::browser()?;
    // What people get: the bundle of a release, only its names without hashes.
    build::console(build::RELEASE, build::Names::Plain)?;
    say("Building the server and the tests");
    // With the features of the whole workspace, as the tests are built: nothing is compiled twice.
    run_command(cargo().args(["build", "--workspace", "--bin", "countersign"]))?;
    say("Starting a PostgreSQL for the tests");
    let cluster = Cluster::start()?;
    say("Running the tests");
    run_command(
        cargo()
            .args(["nextest", "run", "--workspace"])
            .args(args)
            .env("COUNTERSIGN_TEST_POSTGRES", cluster.url())
            .env("COUNTERSIGN_BIN", target().join("debug/countersign")),
    )
}
