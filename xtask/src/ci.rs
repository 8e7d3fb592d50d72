//! What CI runs. Every step runs or fails; none is skipped in silence.

use anyhow::Result;

use crate::process::{cargo, run as run_command, say};
use crate::{build, setup, test, tidy};

/// Format, tidy, clippy, licences and bans, advisories, all tests.
pub fn run() -> Result<()> {
    setup::component("rustfmt", "rustfmt")?;
    setup::component("cargo-clippy", "clippy")?;
    setup::subcommand("cargo-deny", "cargo-deny")?;
    say("Checking the format");
    run_command(cargo().args(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    say("Checking licences, bans and sources");
    run_command(cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    advisories()?;
    // The server embeds the console, so it is built before anything looks at the server.
    build::console(build::RELEASE, build::Names::Plain)?;
    say("Running clippy");
    run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    test::run(&[])
}

/// Checks the dependencies against the RustSec advisory database. Where it cannot be fetched, that is said: a closed
/// network is no reason to fail, and no reason to believe that all is well.
fn advisories() -> Result<()> {
    say("Checking security advisories");
    if cargo().args(["deny", "--log-level", "off", "fetch", "db"]).status()?.success() {
        return run_command(cargo().args(["deny", "check", "--disable-fetch", "advisories"]));
    }
    say("The advisory database cannot be fetched here: advisories were NOT checked");
    Ok(())
}
