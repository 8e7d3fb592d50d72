//! Runs other programs, shows progress, and names failures.

use std::env::consts::{EXE_EXTENSION, EXE_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The folder into which cargo builds.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The path of a program of the workspace that cargo built with this profile (`debug` or `release`).
pub fn built(profile: &str, name: &str) -> PathBuf {
    target().join(profile).join(name).with_extension(EXE_EXTENSION)
}

/// Prints the current step with the minutes and seconds since the first one, so that a log shows which step is slow.
pub fn say(text: &str) {
    static START: OnceLock<Instant> = OnceLock::new();
    let seconds = START.get_or_init(Instant::now).elapsed().as_secs();
    // A closed standard error is no reason to stop building.
    let _ = writeln!(std::io::stderr(), "\x1b[1m==> {:02}:{:02} {text}\x1b[0m", seconds / 60, seconds % 60);
}

/// A command for the `cargo` that runs this program, in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    if std::env::var_os("CI").is_some() {
        // CI builds once, so incremental data would only cost time, and in all half of the disk.
        command.env("CARGO_INCREMENTAL", "0");
    }
    // Cargo sets these variables for xtask, not for what xtask builds. With them, build scripts that read them
    // (`ring`'s does) and everything that depends on those would be built again after each call of cargo without xtask.
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// A command for any other program, in the root of the workspace.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).env("PATH", search_path());
    command
}

/// The `PATH`, followed by the folder where cargo installs programs, which may not be in it.
fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).map(|cargo| cargo.join("bin"));
    // Fails if cargo's folder has a character that a PATH cannot contain.
    std::env::join_paths(std::env::split_paths(&path).chain(cargo)).unwrap_or(path)
}

/// Runs a command to its end. If it fails, the error names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let command_line = command_line(command);
    let status = command.status().with_context(|| format!("`{command_line}` could not be started"))?;
    if !status.success() {
        bail!("`{command_line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command, and returns its standard output, trimmed. `None` if it fails or cannot be started.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a program is in the search path.
pub fn is_installed(name: &str) -> bool {
    let file = format!("{name}{EXE_SUFFIX}");
    std::env::split_paths(&search_path()).any(|folder| folder.join(&file).is_file())
}

/// Whether this process runs as root, who may install packages.
pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).as_deref() == Some("0")
}

/// Installs Debian packages. Fails with a hint if there is no `apt-get`, or this process does not run as root.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    if !is_installed("apt-get") || !is_root() {
        bail!("please install {} with your package manager, and run this again", packages.join(" and "));
    }
    say(&format!("Installing {}", packages.join(" and ")));
    let mut update = program("apt-get");
    run(update.args(["update", "-qq"]).stdout(Stdio::null()))?;
    let mut install = program("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages).stdout(Stdio::null()))
}

fn command_line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}
