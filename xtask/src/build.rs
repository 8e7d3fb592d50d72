//! Building the console and the server.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Builds the console, and returns the folder where its files are. Servers do not see them yet.
pub fn console_files(profile: &str, names: Names) -> Result<PathBuf> {
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
pub fn publish_console(files: &Path) -> Result<()> {
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
    if release {
        console(RELEASE, Names::Hashed)?;
    } else {
        console(DEVELOPMENT, Names::Plain)?;
    }
    say("Building the server");
    let mut build = cargo();
    build.args(["build", "--package", "backend", "--bin", "countersign"]);
    if release {
        build.arg("--release");
    }
    run_command(&mut build)?;
    let binary = built(if release { "release" } else { "debug" }, "countersign");
    say("Starting; Ctrl+C stops it");
    run_command(program(binary).args(["serve", "--demo", "--data", "data", "--flows", "flows"]).args(args))
}
