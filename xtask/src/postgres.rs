//! A throw-away PostgreSQL cluster for tests and benchmarks, on a free port. It stops when this process ends, even if
//! that is killed.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{is_root, run};
use crate::setup;

/// A shell script that starts the server, and stops it and removes its folder when standard input ends.
const SERVE: &str = r#"
"$1/postgres" -D "$2/data" -k "$2" -p "$3" -c listen_addresses=127.0.0.1 -c max_connections=300 $4 </dev/null >"$2/log" 2>&1 &
server=$!
read -r _
kill -QUIT $server
wait $server
rm -rf "$2"
"#;

/// A running cluster.
pub struct Cluster {
    /// The shell that runs [`SERVE`], and holds the pipe to its standard input.
    shell: Child,
    port: u16,
}

impl Cluster {
    /// Starts a cluster for tests in the folder `scratch`, without `fsync`, since no test crashes the machine.
    pub fn start(scratch: &Path) -> Result<Self> {
        Self::with(scratch, "-c fsync=off")
    }

    /// Starts a cluster for measurements in the temporary folder, as durable as in production.
    pub fn start_durable() -> Result<Self> {
        Self::with(&std::env::temp_dir(), "-c fsync=on -c synchronous_commit=on")
    }

    fn with(scratch: &Path, durability: &str) -> Result<Self> {
        let binaries = setup::postgres()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = scratch.join(format!("countersign-postgres-{port}"));
        fs::create_dir_all(&folder)?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder))?;
        }
        run(as_postgres(&binaries.join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(folder.join("data"))
            .stdout(Stdio::null()))
        .context("PostgreSQL's initdb failed")?;
        let shell = as_postgres(Path::new("/bin/sh"))
            .args(["-c", SERVE, "sh"])
            .arg(&binaries)
            .arg(&folder)
            .args([&port.to_string(), durability])
            .stdin(Stdio::piped())
            .spawn()?;
        let cluster = Self { shell, port };
        for _ in 0..300 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(cluster);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("PostgreSQL did not start; its log is {}", folder.join("log").display())
    }

    /// The URL of the administrator, without a database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}", self.port)
    }
}

/// Returns a command for a program. Root runs it as the user `postgres`, since the server refuses to run as root.
fn as_postgres(binary: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(binary);
        command
    } else {
        Command::new(binary)
    };
    command.current_dir("/tmp");
    command
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The shell waits for the end of its standard input.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
