//! Building the console and the server.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Result;

use crate::mirror::mirror;
use crate::process::{built, cargo, program, root, run as run_command, say, target};
use crate::{parts, setup, styles};

/// The profile of the console in a release and in the tests: smallest.
pub const RELEASE: &str = "wasm";
/// The profile of the console in development: quick to build.
pub const DEVELOPMENT: &str = "wasm-dev";

/// How the files of the console are called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// As ever. A debug server reads them from the folder by the names that they had when it was built, and so serves a
    /// new console at once.
    Plain,
    /// With the hash of what is in them, for a server that has them inside: caches tell versions apart.
    Hashed,
}

/// Builds the console into frontend/dist.
pub fn console(profile: &str, names: Names) -> Result<()> {
    publish_console(&console_files(profile, names)?)
}

/// Builds the console while `work` is done, which leaves processors free now and then, and so does the console: both end
/// with long steps on one. Its files stay aside meanwhile, since the server's build script reads the folder from which
/// they are embedded.
pub fn console_beside(profile: &str, names: Names, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let console = thread::scope(|scope| {
        let console = scope.spawn(|| console_files(profile, names));
        work()?;
        console.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    publish_console(&console)
}

/// Builds the console, and returns the folder where its files are. Servers do not see them yet.
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
    // The bundler writes every file anew. The server has them inside, and is not linked again for those that are the
    // same.
    let stage = target().join("console");
    run_command(trunk.args(["build", "--offline"]).args(shape).arg("--dist").arg(&stage))?;
    parts::take_out_marker(&stage)?;
    if names == Names::Hashed {
        parts::name_by_hash(&stage)?;
    }
    Ok(stage)
}

/// Puts the files of a console into frontend/dist, which is what servers serve and embed.
fn publish_console(files: &Path) -> Result<()> {
    mirror(files, &root().join("frontend/dist"))
}

/// Builds the one binary that serves everything.
pub fn release() -> Result<()> {
    console(RELEASE, Names::Hashed)?;
    say("Building the server (release)");
    run_command(cargo().args(["build", "--release", "--locked", "--package", "backend", "--bin", "countersign"]))?;
    let binary = built("release", "countersign");
    let megabytes = fs::metadata(&binary)?.len() / 1_000_000;
    say(&format!("{} is ready ({megabytes} MB); it needs nothing beside it", binary.display()));
    Ok(())
}

/// Sets up, builds, and serves the examples.
pub fn run(release: bool, args: &[String]) -> Result<()> {
    let server = ["build", "--package", "backend"];
    if release {
        console(RELEASE, Names::Hashed)?;
        say("Building the server");
        run_command(cargo().args(server).args(["--bin", "countersign", "--release"]))?;
    } else {
        // With what the folder of the console has now; at the first time most of the work is in the dependencies.
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
