//! Builds the console and the server.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
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
    /// The same names in every build. A debug server reads the files from the folder by the names that they had when it
    /// was built, and so serves a new console at once.
    Plain,
    /// Names with a hash of the content, by which caches tell versions apart; for a server that embeds the files.
    Hashed,
}

/// Builds the console into `frontend/dist`.
pub fn console(profile: &str, names: Names) -> Result<()> {
    publish_console(&console_files(profile, names)?)
}

/// Builds the console in parallel with `work`, since both end with long steps on a single processor. `frontend/dist` is
/// only changed after both, since the server's build script reads it.
pub fn console_beside(profile: &str, names: Names, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let console = thread::scope(|scope| {
        let console = scope.spawn(|| console_files(profile, names));
        work()?;
        console.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    publish_console(&console)
}

/// Builds the console into a staging folder, which servers do not read, and returns that folder.
fn console_files(profile: &str, names: Names) -> Result<PathBuf> {
    setup::toolchain()?;
    styles::write()?;
    say(&format!("Building the console ({profile})"));
    parts::write(profile)?;
    let mut trunk = program("trunk");
    // Trunk takes NO_COLOR for a boolean of its own and stops at NO_COLOR=1.
    trunk.env_remove("NO_COLOR");
    let yes = |yes: bool| if yes { "true" } else { "false" };
    let shape = ["--filehash", yes(names == Names::Hashed), "--minify", yes(profile == RELEASE)];
    // Trunk rewrites every file. Files that are the same must keep their times in `frontend/dist`, or the server, which
    // embeds them, would be linked again.
    let stage = target().join("console");
    run_command(trunk.args(["build", "--offline"]).args(shape).arg("--dist").arg(&stage))?;
    parts::take_out_marker(&stage)?;
    if names == Names::Hashed {
        parts::name_by_hash(&stage)?;
    }
    Ok(stage)
}

/// Copies the files of a console to `frontend/dist`, from which servers serve and embed them.
fn publish_console(files: &Path) -> Result<()> {
    mirror(files, &root().join("frontend/dist"))
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
    let server = ["build", "--package", "backend"];
    if release {
        console(RELEASE, Names::Hashed)?;
        say("Building the server");
        run_command(cargo().args(server).args(["--bin", "countersign", "--release"]))?;
    } else {
        // Only the library, with the old console: the first time, most of the work is its dependencies.
        console_beside(DEVELOPMENT, Names::Plain, || {
            say("Building the server");
            run_command(cargo().args(server).arg("--lib"))
        })?;
        say("Building the server with the console");
        run_command(cargo().args(server).args(["--bin", "countersign"]))?;
    }
    let binary = built(if release { "release" } else { "debug" }, "countersign");
    say("Starting; Ctrl+C stops it");
    run_command(program(binary).args(["serve", "--demo", "--data", "data", "--flows", "flows"]).args(args))
}
