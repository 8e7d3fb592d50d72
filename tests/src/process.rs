//! Child processes that never outlive their test.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process with its own process group. The whole group is killed when this is dropped, and also when the test itself
/// is killed and nothing is dropped.
#[derive(Debug)]
pub struct Process {
    /// The started process, which leads the group.
    pub child: Child,
    /// A shell that kills the group when its own standard input ends; the test holds that open as long as it lives.
    guard: Child,
}

impl Process {
    /// Starts `command` in a new process group, without standard input. Panics if it does not start.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let guard = Command::new("sh")
            .args(["-c", "read -r _; kill -s KILL -- -$0", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell starts");
        Self { child, guard }
    }

    /// The id of the process, which is also the id of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the group at once (`SIGKILL`), and waits until the process is gone.
    pub fn kill(&mut self) {
        // Not reaped yet, so the id still belongs to this process.
        if let Ok(None) = self.child.try_wait() {
            signal_group("KILL", self.child.id());
        }
        let _ = self.child.wait();
    }

    /// Asks the process to stop (`SIGTERM`).
    pub fn terminate(&self) {
        let _ = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard goes first: once the process is reaped, its id could belong to another group.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        // Other members of the group may still run after the process itself has ended.
        signal_group("KILL", self.child.id());
        let _ = self.child.wait();
    }
}

fn signal_group(signal: &str, group: u32) {
    let _ = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg("--")
        .arg(format!("-{group}"))
        .stderr(Stdio::null())
        .status();
}
