//! What CI runs. Every step runs or fails; none is skipped in silence.

use anyhow::Result;

use crate::process::{cargo, run as run_command, say};
use crate::{build, setup, test, tidy};

/// Format, tidy, clippy, licences and bans, all tests.
pub fn run() -> Result<()> {
    setup::component("rustfmt", "rustfmt")?;
    setup::component("cargo-clippy", "clippy")?;
    setup::subcommand("cargo-deny", "cargo-deny")?;
    say("Checking the format");
    run_command(cargo().args(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    say("Checking licences, bans and sources");
    run_command(cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    // The server embeds the console, so it is built before anything looks at the server.
    build::console(build::DEVELOPMENT)?;
    say("Running clippy");
    run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    test::run(&[])
}
