//! Runs the fuzz targets with libFuzzer, on the usual toolchain: the instrumentation is LLVM's own, and needs no
//! nightly compiler. Findings are kept in `fuzz/artifacts`, inputs with new coverage in `target/fuzz/corpus`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, program, root, run as run_command, say, target};
use crate::setup::host;

/// The flags that make the compiler record coverage: edges, in counters of eight bits, and the operands of comparisons.
const INSTRUMENTATION: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "--cfg=fuzzing",
];
/// The maximum length of an input, in bytes. Clients may send more, but mutating longer inputs finds nothing more.
const MAX_LENGTH: u32 = 16 * 1024;
/// The time limit for one input, in seconds; the server's own budgets are far shorter.
const TIMEOUT: u32 = 10;
/// The memory limit of the fuzzer, in MiB.
const MEMORY: u32 = 1024;
/// The stack size, in KiB: that of Tokio's threads in the server.
const STACK: u32 = 2048;

/// Fuzzes the target `only`, or each in turn, for `seconds` each. Fails at the end if a target has a finding.
pub fn run(only: Option<&str>, seconds: u32) -> Result<()> {
    let targets = targets(only)?;
    let fuzzer = build()?;
    let mut findings = Vec::new();
    for name in &targets {
        say(&format!("Fuzzing {name} for {seconds} s"));
        if let Err(error) = fuzz(&fuzzer, name, seconds) {
            findings.push(format!("{name}: {error}"));
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    bail!(
        "{} of {} targets have a finding, kept in fuzz/artifacts:\n{}",
        findings.len(),
        targets.len(),
        findings.join("\n")
    )
}

/// The names of the targets, from the folders in `fuzz/corpus`; a test checks that each folder belongs to a target.
fn targets(only: Option<&str>) -> Result<Vec<String>> {
    let corpus = root().join("fuzz/corpus");
    let mut names: Vec<String> = fs::read_dir(&corpus)
        .with_context(|| format!("{} is missing", corpus.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    match only {
        None => Ok(names),
        Some(name) if names.iter().any(|known| known == name) => Ok(vec![name.to_owned()]),
        Some(name) => bail!("no fuzz target is called `{name}`: choose one of {}", names.join(", ")),
    }
}

/// Builds the fuzzer, optimised and instrumented, in its own target folder, and returns the path of the binary.
fn build() -> Result<PathBuf> {
    let host = host().context("rustc does not name its host")?;
    let folder = target().join("fuzz");
    say("Building the fuzz targets");
    // With `--target`, build scripts and procedural macros are not instrumented.
    run_command(
        cargo()
            .args(["build", "--release", "--package", "fuzz", "--features", "libfuzzer", "--bin", "fuzz", "--locked"])
            .args(["--target", &host, "--target-dir"])
            .arg(&folder)
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_STRIP", "none")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
            .env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}")),
    )?;
    Ok(folder.join(host).join("release/fuzz"))
}

fn fuzz(fuzzer: &Path, name: &str, seconds: u32) -> Result<()> {
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    let found = target().join("fuzz/corpus").join(name);
    fs::create_dir_all(&artifacts)?;
    fs::create_dir_all(&found)?;
    let prefix = format!("{}/", artifacts.display());
    // libFuzzer adds new inputs to the first folder, and only reads the second, which is under version control.
    run_command(
        program("sh")
            .args(["-c", &format!("ulimit -s {STACK} && exec \"$@\""), "sh"])
            .arg(fuzzer)
            .arg(&found)
            .arg(&corpus)
            .arg(format!("-artifact_prefix={prefix}"))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={MAX_LENGTH}"))
            .arg(format!("-timeout={TIMEOUT}"))
            .arg(format!("-rss_limit_mb={MEMORY}"))
            .args(["-print_final_stats=1", "-verbosity=0"])
            .env("COUNTERSIGN_FUZZ_TARGET", name),
    )
}
