//! The checks that CI runs. Every step runs or fails; none is skipped silently.

use anyhow::{Result, ensure};

use crate::process::{cargo, run as run_command, say};
use crate::{setup, test, tidy};

/// Runs everything that must pass before a change lands: the checks, and every test.
pub fn run() -> Result<()> {
    quick_checks()?;
    if !check_advisories()? {
        say("The advisory database cannot be fetched here: advisories were NOT checked");
    }
    test::set_up()?;
    test::beside_console(|| {
        clippy()?;
        test::build()
    })?;
    test::run_built(false, &[])
}

/// Runs the checks that need no test: format, tidy, licences and bans, clippy.
pub fn check() -> Result<()> {
    quick_checks()?;
    clippy()
}

/// Checks the dependencies against the RustSec advisory database. Fails if it cannot be fetched.
pub fn audit() -> Result<()> {
    setup::subcommand("cargo-deny", "cargo-deny")?;
    ensure!(check_advisories()?, "the advisory database cannot be fetched");
    Ok(())
}

fn quick_checks() -> Result<()> {
    setup::component("rustfmt", "rustfmt")?;
    setup::subcommand("cargo-deny", "cargo-deny")?;
    say("Checking the format");
    run_command(cargo().args(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    say("Checking licences, bans and sources");
    run_command(cargo().args(["deny", "check", "bans", "licenses", "sources"]))
}

fn clippy() -> Result<()> {
    setup::component("cargo-clippy", "clippy")?;
    say("Running clippy");
    run_command(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

/// Checks the advisories. Returns `false` if they could not be fetched: a closed network is no reason to fail a change,
/// but the caller must say that nothing was checked.
fn check_advisories() -> Result<bool> {
    say("Checking security advisories");
    if !cargo().args(["deny", "--log-level", "off", "fetch", "db"]).status()?.success() {
        return Ok(false);
    }
    run_command(cargo().args(["deny", "check", "--disable-fetch", "advisories"]))?;
    Ok(true)
}
