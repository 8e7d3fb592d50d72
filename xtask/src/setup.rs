//! What building and testing needs beside cargo: the standard library for wasm32, Trunk, wasm-bindgen, and programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{apt_install, cargo, is_installed, is_root, output, program, run, say};

/// The bundler.
const TRUNK: &str = "0.21.14";
/// Must be the version of the `wasm-bindgen` crate in Cargo.lock.
const WASM_BINDGEN: &str = "0.2.130";
/// Names the folder of PostgreSQL's programs, where several versions are installed.
const BINARIES: &str = "COUNTERSIGN_TEST_POSTGRES_BINARIES";
/// The target of the console.
pub const WASM: &str = "wasm32-unknown-unknown";
/// Debian's compiler for the web brings the sources of its own standard library.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Sets up what building the console needs; each step is skipped where it is done.
pub fn toolchain() -> Result<()> {
    wasm_target()?;
    // Neither downloads anything here, so they need no TLS, which takes long to build.
    installed_by_cargo("trunk", ("trunk", TRUNK), &["--locked", "--no-default-features"])?;
    installed_by_cargo("wasm-bindgen", ("wasm-bindgen-cli", WASM_BINDGEN), &["--no-default-features"])
}

/// The compiler that builds the console, where it is not rustup's own: see [`debian_target`].
pub fn console_environment() -> Vec<(&'static str, String)> {
    if has_core(target_libdir("rustc").as_deref()) || !has_core(target_libdir(DEBIAN_RUSTC).as_deref()) {
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
    if has_core(target_libdir("rustc").as_deref()) || has_core(target_libdir(DEBIAN_RUSTC).as_deref()) {
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

/// Builds the standard library for wasm32 from the sources that Debian ships beside its own compiler. Bitcode is
/// embedded, since link-time optimisation needs it.
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

/// Where a compiler looks for the libraries of wasm32.
fn target_libdir(rustc: &str) -> Option<PathBuf> {
    output(Command::new(rustc).args(["--print", "target-libdir", "--target", WASM])).map(PathBuf::from)
}

/// Whether the standard library is really there: rustup's list does not know of one that came another way.
fn has_core(libdir: Option<&Path>) -> bool {
    libdir.and_then(|libdir| fs::read_dir(libdir).ok()).is_some_and(|entries| {
        entries.flatten().any(|entry| {
            let path = entry.path();
            let is_rlib = path.extension().is_some_and(|extension| extension == "rlib");
            is_rlib && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcore-"))
        })
    })
}

fn host() -> Option<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// A program in exactly this version.
fn installed_by_cargo(command: &str, (krate, version): (&str, &str), arguments: &[&str]) -> Result<()> {
    if output(program(command).arg("--version")).is_some_and(|shown| shown.ends_with(version)) {
        return Ok(());
    }
    say(&format!("Installing {krate} {version} (once)"));
    run(install(krate).args(["--version", version]).args(arguments))
        .with_context(|| format!("{krate} {version} cannot be had; please install it by hand"))
}

/// A cargo subcommand in any version, installed where it is missing.
pub fn subcommand(command: &str, krate: &str) -> Result<()> {
    if is_installed(command) {
        return Ok(());
    }
    say(&format!("Installing {krate} (once)"));
    run(install(krate).arg("--locked"))
        .with_context(|| format!("{krate} is not installed, and could not be; please install it by hand"))
}

/// `cargo install`. What runs for seconds is not optimised for minutes, as its own profile would have it.
fn install(krate: &str) -> Command {
    let mut install = cargo();
    let profile = [("OPT_LEVEL", "1"), ("LTO", "off"), ("CODEGEN_UNITS", "16"), ("DEBUG", "none")];
    let profile = profile.map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value));
    install.args(["install", krate]).envs(profile);
    install
}

/// A component of rustup's toolchain, such as rustfmt.
pub fn component(command: &str, component: &str) -> Result<()> {
    if is_installed(command) && output(program(command).arg("--version")).is_some() {
        return Ok(());
    }
    run(program("rustup").args(["component", "add", component]))
        .with_context(|| format!("{component} is missing; please install it by hand"))
}

/// Chromium and its driver, for the tests that use a real browser.
pub fn browser() -> Result<()> {
    if is_installed("chromium") && is_installed("chromedriver") {
        Ok(())
    } else {
        apt_install(&["chromium", "chromium-driver"])
    }
}

/// The folder of PostgreSQL's server binaries.
pub fn postgres() -> Result<PathBuf> {
    if let Some(folder) = postgres_binaries() {
        return Ok(folder);
    }
    apt_install(&["postgresql"])?;
    postgres_binaries().context("PostgreSQL's server (initdb and pg_ctl) is missing; please install it by hand")
}

/// The folder that is named, else the newest version where Debian puts it, else what the path has.
fn postgres_binaries() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(BINARIES) {
        return Some(folder.into());
    }
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())
        .collect();
    found.sort();
    found.pop().or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|folder| {
            folder.join("initdb").is_file() && folder.join("pg_ctl").is_file() && folder != Path::new("/usr/local/bin")
        })
    })
}
