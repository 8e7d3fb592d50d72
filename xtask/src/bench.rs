//! Runs the benchmarks, with everything built with optimisation and a PostgreSQL cluster of its own.

use anyhow::Result;

use crate::build;
use crate::postgres::Cluster;
use crate::process::{built, cargo, program, run as run_command, say};

/// Builds the server and the bench, and runs the bench with these arguments.
pub fn run(args: &[String]) -> Result<()> {
    build::console(build::RELEASE, build::Names::Hashed)?;
    say("Building the server and the bench (release)");
    // In one build: the bench needs more features of some dependencies, for which a second one would compile them again.
    let packages = ["--package", "backend", "--bin", "countersign", "--package", "bench", "--bin", "bench"];
    run_command(cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let cluster = Cluster::start_durable()?;
    say("Measuring");
    run_command(
        program(built("release", "bench"))
            .args(args)
            .env("COUNTERSIGN_TEST_POSTGRES", cluster.url())
            .env("COUNTERSIGN_BIN", built("release", "countersign")),
    )
}
