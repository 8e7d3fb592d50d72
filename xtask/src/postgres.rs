//! A throw-away PostgreSQL cluster for tests and benchmarks: started on a free port, stopped when dropped.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process::{is_root, run};
use crate::setup;

/// A running cluster.
pub struct Cluster {
    binaries: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Cluster {
    /// Starts one for tests, which lose nothing when the machine does.
    pub fn start() -> Result<Self> {
        Self::with("-c fsync=off")
    }

    /// Starts one that is as durable as in use, for measuring.
    pub fn start_durable() -> Result<Self> {
        Self::with("-c fsync=on -c synchronous_commit=on")
    }

    /// As root it runs as the user `postgres`, since the server refuses to run as root.
    fn with(durability: &str) -> Result<Self> {
        let binaries = setup::postgres()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = std::env::temp_dir().join(format!("countersign-postgres-{port}"));
        fs::create_dir_all(&folder)?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder))?;
        }
        let cluster = Self { binaries, folder, port };
        run(cluster
            .command("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(cluster.data())
            .stdout(Stdio::null()))
        .context("PostgreSQL's initdb failed")?;
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c max_connections=300 {durability}",
            cluster.folder.display()
        );
        let log = cluster.folder.join("log");
        run(cluster
            .command("pg_ctl")
            .args(["--wait", "--silent", "-o", &options, "-l"])
            .arg(log)
            .arg("-D")
            .arg(cluster.data())
            .arg("start")
            .stdout(Stdio::null()))
        .context("PostgreSQL did not start")?;
        Ok(cluster)
    }

    /// The address of its administrator, without a database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}", self.port)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, name: &str) -> Command {
        let binary = self.binaries.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(binary);
            command
        } else {
            Command::new(binary)
        };
        command.current_dir(Path::new("/tmp"));
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Whatever fails here, the cluster is of no use to anybody any more.
        let _ =
            self.command("pg_ctl").args(["--silent", "-m", "immediate", "-D"]).arg(self.data()).arg("stop").status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
