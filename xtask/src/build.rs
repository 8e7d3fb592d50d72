//! Builds the console and the server.

use std::fs;
use std::panic::resume_unwind;
use std::thread;

use anyhow::Result;

use crate::mirror::mirror;
use crate::process::{built, cargo, program, root, run as run_command, say, target};
use crate::{parts, setup, styles};

/// The cargo profile of the console for releases and tests, optimised for size.
pub const RELEASE: &str = "wasm";
/// The cargo profile of the console for development, which builds quickly.
pub const DEVELOPMENT: &str = "wasm-dev";

/// How the files of the console are named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// The same names in every build. A debug server reads the files at each request, by the names that they had at its
    /// start, and so serves a new console at once.
    Plain,
    /// Names with a hash of the content, by which caches tell versions apart; for a server that embeds the files.
    Hashed,
}

/// Builds the console in parallel with `work`, such as building a debug server, which does not embed the console. Both
/// end with long steps on a single processor.
pub fn console_beside(profile: &str, names: Names, work: impl FnOnce() -> Result<()>) -> Result<()> {
    thread::scope(|scope| {
        let console = scope.spawn(|| console(profile, names));
        work()?;
        console.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Builds the console into `frontend/dist`, from which servers serve or embed it.
pub fn console(profile: &str, names: Names) -> Result<()> {
    setup::toolchain()?;
    styles::write()?;
    say(&format!("Building the console ({profile})"));
    parts::write(profile)?;
    let mut trunk = program("trunk");
    // Trunk takes NO_COLOR for a boolean of its own and stops at NO_COLOR=1.
    trunk.env_remove("NO_COLOR");
    let yes = |yes: bool| if yes { "true" } else { "false" };
    let shape = ["--filehash", yes(names == Names::Hashed), "--minify", yes(profile == RELEASE)];
    // Trunk rewrites every file. Files that are the same must keep their times in `frontend/dist`, or a release, which
    // embeds them, would be compiled again.
    let stage = target().join("console");
    run_command(trunk.args(["build", "--offline"]).args(shape).arg("--dist").arg(&stage))?;
    parts::take_out_marker(&stage)?;
    if names == Names::Hashed {
        parts::name_by_hash(&stage)?;
    }
    mirror(&stage, &root().join("frontend/dist"))
}

/// Builds the release binary, with the console embedded.
pub fn release() -> Result<()> {
    console(RELEASE, Names::Hashed)?;
    say("Building the server (release)");
    run_command(cargo().args(["build", "--release", "--locked", "--package", "backend", "--bin", "countersign"]))?;
    let binary = built("release", "countersign");
    let megabytes = fs::metadata(&binary)?.len() / 1_000_000;
    say(&format!("{} is ready ({megabytes} MB); it needs nothing beside it", binary.display()));
    Ok(())
}

/// Sets up, builds, and serves the example flows, with these further arguments of `countersign serve`.
pub fn run(release: bool, args: &[String]) -> Result<()> {
    let server = ["build", "--package", "backend", "--bin", "countersign"];
    if release {
        console(RELEASE, Names::Hashed)?;
        say("Building the server");
        run_command(cargo().args(server).arg("--release"))?;
    } else {
        console_beside(DEVELOPMENT, Names::Plain, || {
            say("Building the server");
            run_command(cargo().args(server))
        })?;
    }
    let binary = built(if release { "release" } else { "debug" }, "countersign");
    say("Starting; Ctrl+C stops it");
    run_command(program(binary).args(["serve", "--demo", "--data", "data", "--flows", "flows"]).args(args))
}
