//! Building the console and the server.

use std::fs;

use anyhow::Result;

use crate::mirror::mirror;
use crate::process::{cargo, program, root, run as run_command, say, target};
use crate::{setup, styles};

/// The profile of the console in a release: smallest.
pub const RELEASE: &str = "wasm";
/// The profile of the console in development and tests: quick to build.
pub const DEVELOPMENT: &str = "wasm-dev";

/// Builds the console into frontend/dist.
pub fn console(profile: &str) -> Result<()> {
    setup::toolchain()?;
    styles::write()?;
    say(&format!("Building the console ({profile})"));
    let mut trunk = program("trunk");
    // Trunk takes NO_COLOR for a boolean of its own and stops at NO_COLOR=1.
    trunk.env_remove("NO_COLOR").envs(setup::console_environment());
    // A debug server reads the files from the folder, by the names that they had when it was built: names without a
    // hash let it serve a new console at once. A release has everything inside, and wants caches to tell versions apart.
    let release = if profile == RELEASE { "true" } else { "false" };
    let shape = ["--filehash", release, "--minify", release];
    // The bundler writes every file anew. The server has them inside, and is not linked again for those that are the
    // same.
    let built = target().join("console");
    run_command(trunk.args(["build", "--offline", "--cargo-profile", profile]).args(shape).arg("--dist").arg(&built))?;
    mirror(&built, &root().join("frontend/dist"))
}

/// Builds the one binary that serves everything.
pub fn release() -> Result<()> {
    console(RELEASE)?;
    say("Building the server (release)");
    run_command(cargo().args(["build", "--release", "--locked", "--package", "backend", "--bin", "countersign"]))?;
    let binary = target().join("release/countersign");
    let megabytes = fs::metadata(&binary)?.len() / 1_000_000;
    say(&format!("{} is ready ({megabytes} MB); it needs nothing beside it", binary.display()));
    Ok(())
}

/// Sets up, builds, and serves the examples.
pub fn run(release: bool, args: &[String]) -> Result<()> {
    console(if release { RELEASE } else { DEVELOPMENT })?;
    say("Building the server");
    let mut build = cargo();
    build.args(["build", "--package", "backend", "--bin", "countersign"]);
    if release {
        build.arg("--release");
    }
    run_command(&mut build)?;
    let binary = target().join(if release { "release" } else { "debug" }).join("countersign");
    say("Starting; Ctrl+C stops it");
    run_command(program(binary).args(["serve", "--demo", "--data", "data", "--flows", "flows"]).args(args))
}
