//! Child processes that never outlive their test.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process with a group of its own; the whole group is killed when this is dropped, or when the test itself is
/// killed and nothing is dropped.
#[derive(Debug)]
pub struct Process {
    /// The process that was started, which leads the group.
    pub child: Child,
    /// Kills the group when its standard input ends, which this program holds open for as long as it lives.
    guard: Child,
}

impl Process {
    /// Starts `command` in a new process group, without standard input. Panics where it does not start.
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

    /// The process id, which is also that of the group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the group at once (`SIGKILL`), and waits until the process is gone.
    pub fn kill(&mut self) {
        // Not reaped yet, so the id is still this process's.
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
        // First, while the group is certainly still this one.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        // The group may have members left where the process itself has ended.
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
