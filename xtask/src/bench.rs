//! Measuring: everything built with optimisation, a PostgreSQL of its own, one program that prints the table.

use anyhow::Result;

use crate::build;
use crate::postgres::Cluster;
use crate::process::{built, cargo, program, run as run_command, say};

/// Builds and measures.
pub fn run(args: &[String]) -> Result<()> {
    build::release()?;
    say("Building the bench");
    run_command(cargo().args(["build", "--release", "--package", "bench"]))?;
    let cluster = Cluster::start_durable()?;
    say("Measuring");
    run_command(
        program(built("release", "bench"))
            .args(args)
            .env("COUNTERSIGN_TEST_POSTGRES", cluster.url())
            .env("COUNTERSIGN_BIN", built("release", "countersign")),
    )
}
