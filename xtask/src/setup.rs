//! Installs what building and testing need beside cargo: the standard library for wasm32, Trunk, and other programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{apt_install, cargo, is_installed, is_root, output, program, run, say};

/// The version of Trunk, the console's bundler.
const TRUNK: &str = "0.21.14";
/// The environment variable that names the folder of PostgreSQL's programs.
const BINARIES: &str = "COUNTERSIGN_TEST_POSTGRES_BINARIES";
/// The target for which the console is compiled.
pub const WASM: &str = "wasm32-unknown-unknown";
/// Debian's compiler, from whose packages the standard library for wasm32 can be built.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Installs what building the console needs, and skips steps that are done.
pub fn toolchain() -> Result<()> {
    wasm_target()?;
    trunk()
}

/// The environment variables that select Debian's compiler for the console (see [`debian_target`]). Empty if the usual
/// compiler has the standard library for wasm32, or neither has.
pub fn console_environment() -> Vec<(&'static str, String)> {
    if has_core("rustc") || !has_core(DEBIAN_RUSTC) {
        return Vec::new();
    }
    let linker = output(Command::new("rustc").args(["--print", "sysroot"]))
        .zip(host())
        .map(|(sysroot, host)| format!("{sysroot}/lib/rustlib/{host}/bin/rust-lld"));
    let mut variables = vec![("RUSTC", DEBIAN_RUSTC.to_owned())];
    variables.extend(linker.map(|linker| ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)));
    variables
}

fn wasm_target() -> Result<()> {
    if has_core("rustc") || has_core(DEBIAN_RUSTC) {
        return Ok(());
    }
    say("Adding the wasm32 target");
    if is_installed("rustup") && run(program("rustup").args(["target", "add", WASM])).is_ok() {
        return Ok(());
    }
    say("rustup could not fetch it; building it from Debian's sources instead");
    debian_target().context(
        "the standard library for wasm32-unknown-unknown cannot be had: `rustup target add wasm32-unknown-unknown` \
         failed, and so did Debian's rustc-web and rust-web-src. Please install it by hand, and run this again",
    )
}

/// Builds the standard library for wasm32 from the sources that Debian ships with its compiler. Embeds bitcode, which
/// link-time optimisation needs.
fn debian_target() -> Result<()> {
    if !is_root() {
        bail!("installing Debian's packages needs root");
    }
    apt_install(&["rustc-web", "rust-web-src"])?;
    let scratch = std::env::temp_dir().join("countersign-wasm-std");
    fs::create_dir_all(scratch.join("src"))?;
    fs::write(scratch.join("src/lib.rs"), "")?;
    fs::write(scratch.join("Cargo.toml"), "[package]\nname = \"empty\"\nedition = \"2021\"\n[workspace]\n")?;
    run(cargo()
        .current_dir(&scratch)
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .args(["build", "--release", "-Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test", "--target", WASM])
        .args(["--target-dir", "target"]))?;
    let libdir = target_libdir(DEBIAN_RUSTC).context("Debian's rustc does not say where its libraries are")?;
    fs::create_dir_all(&libdir)?;
    for entry in fs::read_dir(scratch.join(format!("target/{WASM}/release/deps")))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "rlib") && !name.starts_with("libempty") {
            fs::copy(&path, libdir.join(name))?;
        }
    }
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

/// The folder where a compiler looks for the libraries of wasm32. `None` if the compiler cannot be run.
fn target_libdir(rustc: &str) -> Option<PathBuf> {
    output(Command::new(rustc).args(["--print", "target-libdir", "--target", WASM])).map(PathBuf::from)
}

/// Whether a compiler has the core library for wasm32. rustup's list of targets does not show one that was installed
/// another way.
fn has_core(rustc: &str) -> bool {
    target_libdir(rustc).and_then(|libdir| fs::read_dir(libdir).ok()).is_some_and(|entries| {
        entries.flatten().any(|entry| {
            let is_rlib = entry.path().extension().is_some_and(|extension| extension == "rlib");
            is_rlib && entry.file_name().to_string_lossy().starts_with("libcore-")
        })
    })
}

/// The target for which rustc compiles by default.
pub fn host() -> Option<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// Installs Trunk, unless it is installed in exactly this version.
///
/// It has nothing to download here, so it is built without TLS, which takes long to compile. It mostly copies files, so
/// it is not optimised at all.
fn trunk() -> Result<()> {
    if output(program("trunk").arg("--version")).is_some_and(|shown| shown.ends_with(TRUNK)) {
        return Ok(());
    }
    say(&format!("Installing Trunk {TRUNK} (once)"));
    run(install("trunk", "0").args(["--version", TRUNK, "--locked", "--no-default-features"]))
        .with_context(|| format!("Trunk {TRUNK} cannot be had; please install it by hand"))
}

/// Installs a cargo subcommand, unless it is installed in any version.
pub fn subcommand(command: &str, krate: &str) -> Result<()> {
    if is_installed(command) {
        return Ok(());
    }
    say(&format!("Installing {krate} (once)"));
    run(install(krate, "1").arg("--locked"))
        .with_context(|| format!("{krate} is not installed, and could not be; please install it by hand"))
}

/// A command `cargo install` with little optimisation: the programs run for seconds, and would be optimised for
/// minutes.
fn install(krate: &str, opt_level: &str) -> Command {
    let mut install = cargo();
    let profile = [("OPT_LEVEL", opt_level), ("LTO", "off"), ("CODEGEN_UNITS", "16"), ("DEBUG", "none")];
    let profile = profile.map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value));
    install.args(["install", krate]).envs(profile);
    install
}

/// Installs a component of rustup's toolchain, such as rustfmt, unless its command works.
pub fn component(command: &str, component: &str) -> Result<()> {
    if is_installed(command) && output(program(command).arg("--version")).is_some() {
        return Ok(());
    }
    run(program("rustup").args(["component", "add", component]))
        .with_context(|| format!("{component} is missing; please install it by hand"))
}

/// Installs Chromium and its driver for the tests that use a real browser, unless both are installed.
pub fn browser() -> Result<()> {
    if is_installed("chromium") && is_installed("chromedriver") {
        Ok(())
    } else {
        apt_install(&["chromium", "chromium-driver"])
    }
}

/// Returns the folder of PostgreSQL's server binaries, and installs them if they are missing.
pub fn postgres() -> Result<PathBuf> {
    if let Some(folder) = postgres_binaries() {
        return Ok(folder);
    }
    apt_install(&["postgresql"])?;
    postgres_binaries().context("PostgreSQL's server (initdb and pg_ctl) is missing; please install it by hand")
}

/// Finds PostgreSQL's server binaries: in the folder that [`BINARIES`] names, else in Debian's newest version, else in
/// the `PATH`.
fn postgres_binaries() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(BINARIES) {
        return Some(folder.into());
    }
    let has_them = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|entry| entry.path().join("bin")).filter(has_them).max().or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|folder| has_them(folder) && folder != Path::new("/usr/local/bin"))
    })
}
