//! An MCP server of the settings: connected when it is first needed, shared by all calls, restarted after it has ended,
//! with increasing delays if it does not stay up, and ended with all its processes.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError, ServiceExt};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use shared::time::Span;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cause::cause;
use super::listing::{self, Listed};
use crate::engine::TaskFailure;
use crate::tool::{McpServer, failed};

/// The variables of this server's environment that a started program inherits: enough to find it and run it.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The start timeout if the settings have none.
const TO_START: Span = Span(Duration::from_secs(30));

/// The wait after the first failed start or early end; each further one doubles it, up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// The uptime after which the end of a server does not count as a failure.
const STAYED: Duration = Duration::from_mins(1);

/// The connection of the library. Its task talks to the server.
pub(super) type Service = RunningService<RoleClient, ()>;

/// A server, connected or not. After this is dropped, no start is begun or continued.
pub(super) struct ServerConnection {
    server: Arc<Server>,
    _closing: DropGuard,
}

struct Server {
    name: String,
    how: McpServer,
    headers: HashMap<HeaderName, HeaderValue>,
    state: Mutex<ProcessState>,
    /// Cancelled when the server must end and must not be started again.
    closing: CancellationToken,
}

#[derive(Default)]
struct ProcessState {
    live: Option<Live>,
    /// The start in progress.
    start: Option<Start>,
    /// The number of consecutive failed starts and early ends.
    failures: u32,
    /// The earliest time of the next start after a failure.
    not_before: Option<Instant>,
}

/// A start, in a task of its own: it continues when callers stop waiting for it, and all who wait learn its outcome.
struct Start {
    outcome: StartOutcome,
    task: JoinHandle<()>,
}

/// What a caller who needs a connection gets.
enum Reached {
    Connected(Connection),
    Starting(StartOutcome),
}

/// The outcome of a start; `None` while it is in progress.
type StartOutcome = watch::Receiver<Option<Result<Connection, TaskFailure>>>;

/// A server that is, or was, connected.
struct Live {
    service: Service,
    group: ProcessGroup,
    since: Instant,
    tools: Arc<Mutex<Vec<Listed>>>,
}

/// The part of a connection that calls need.
#[derive(Clone)]
pub(super) struct Connection {
    /// The handle for requests to the server.
    pub(super) peer: Peer<RoleClient>,
    tools: Arc<Mutex<Vec<Listed>>>,
}

impl Connection {
    /// Returns the tools that the server listed last.
    pub(super) fn tools(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.tools.lock()
    }

    /// Asks the server for its tools, and remembers them.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, ServiceError> {
        let listed = listing::of(&self.peer).await?;
        self.tools().clone_from(&listed);
        Ok(listed)
    }
}

impl ServerConnection {
    /// `headers` are sent with every request, if the server is reached over HTTP.
    pub(super) fn new(name: String, how: McpServer, headers: HashMap<HeaderName, HeaderValue>) -> Self {
        let closing = CancellationToken::new();
        let server = Server { name, how, headers, state: Mutex::default(), closing: closing.clone() };
        Self { server: Arc::new(server), _closing: closing.drop_guard() }
    }

    /// Returns the connection. If there is none and no wait is imposed, starts the server; if the caller stops waiting,
    /// the start continues. On failure, it is certain that no call was made.
    pub(super) async fn connection(&self) -> Result<Connection, TaskFailure> {
        let mut outcome = match self.server.connect_or_start()? {
            Reached::Connected(connection) => return Ok(connection),
            Reached::Starting(outcome) => outcome,
        };
        let ended = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        ended.unwrap_or_else(|| Err(self.server.is_closing()))
    }

    /// Returns what the server lists about a tool. `None` if it has no such tool.
    pub(super) async fn listed(&self, tool: &str) -> Result<Option<Listed>, TaskFailure> {
        let connection = self.connection().await?;
        let known = connection.tools().iter().find(|known| known.name == tool).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let listed = connection.list().await;
        let listed = listed
            .map_err(|error| failed(format!("the MCP server `{}`: {}", self.server.name, cause(&error)), true))?;
        Ok(listed.into_iter().find(|known| known.name == tool))
    }

    /// Ends the server, and waits until it has ended: first by closing its input, as the protocol demands, then by
    /// signals. A start in progress is aborted.
    pub(super) async fn close(&self) {
        self.server.closing.cancel();
        let start = self.server.state.lock().start.take();
        if let Some(Start { task, .. }) = start {
            // A start that panicked has left nothing behind either.
            let _ = task.await;
        }
        let live = self.server.state.lock().live.take();
        if let Some(live) = live {
            live.close().await;
        }
    }

    #[cfg(test)]
    pub(super) fn use_service(&self, service: Service) {
        self.server.state.lock().live = Some(Live::new(service, ProcessGroup(None)));
    }
}

impl Server {
    /// Returns the connection or the start in progress. If there is neither, starts the server.
    fn connect_or_start(self: &Arc<Self>) -> Result<Reached, TaskFailure> {
        let mut state = self.state.lock();
        if let Some(live) = state.live.as_ref().filter(|live| live.is_connected()) {
            return Ok(Reached::Connected(live.connection()));
        }
        if let Some(start) = state.start.as_ref().filter(|start| !start.task.is_finished()) {
            return Ok(Reached::Starting(start.outcome.clone()));
        }
        if self.closing.is_cancelled() {
            return Err(self.is_closing());
        }
        let name = &self.name;
        if state.start.take().is_some() {
            tracing::error!(server = %name, "the start of an MCP server has panicked");
            state.ended(false);
        }
        if let Some(dead) = state.live.take() {
            tracing::warn!(server = %name, "an MCP server has ended; it will be restarted when needed");
            state.ended(dead.since.elapsed() >= STAYED);
            // Its remaining processes may take some seconds to end.
            tokio::spawn(dead.close());
        }
        if let Some(wait) = state.wait() {
            let message = format!("the MCP server `{name}` has ended, and will not be restarted for {}", seconds(wait));
            return Err(TaskFailure { retry_after: Some(Span(wait)), ..failed(message, true) });
        }
        let (ended, outcome) = watch::channel(None);
        let task = tokio::spawn(Arc::clone(self).start(ended));
        state.start = Some(Start { outcome: outcome.clone(), task });
        Ok(Reached::Starting(outcome))
    }

    /// Starts the server, and reports the outcome through `ended`.
    async fn start(self: Arc<Self>, ended: watch::Sender<Option<Result<Connection, TaskFailure>>>) {
        let limit = self.how.start_timeout();
        let connect = timeout(limit.0, self.how.connect(&self.headers));
        // Dropping the unfinished start ends what it has begun.
        let Some(connected) = self.closing.run_until_cancelled(connect).await else { return };
        let name = &self.name;
        let why = match connected {
            Ok(Ok(live)) => {
                let connection = live.connection();
                let mut state = self.state.lock();
                state.live = Some(live);
                state.start = None;
                ended.send_replace(Some(Ok(connection)));
                return;
            }
            Ok(Err(error)) => format!("the MCP server `{name}` cannot be reached: {}", cause(&*error)),
            Err(_) if matches!(self.how, McpServer::Url { .. }) => {
                format!(
                    "the MCP server `{name}` did not answer within {limit} (`url` of `[mcp.{name}]` in the settings)"
                )
            }
            Err(_) => format!(
                "the MCP server `{name}` did not start within {limit} (`start_timeout` of `[mcp.{name}]` in the settings)"
            ),
        };
        let mut state = self.state.lock();
        state.ended(false);
        state.start = None;
        let retry_after = state.wait().map(Span);
        ended.send_replace(Some(Err(TaskFailure { retry_after, ..failed(why, true) })));
    }

    fn is_closing(&self) -> TaskFailure {
        failed(format!("the MCP server `{}` is not started any more: this server is stopping", self.name), true)
    }
}

impl ProcessState {
    /// Records that the server has ended or failed to start. `stayed`: it was up for long enough not to count as a
    /// failure.
    fn ended(&mut self, stayed: bool) {
        self.failures = if stayed { 0 } else { self.failures.saturating_add(1) };
        let doublings = self.failures.saturating_sub(1);
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_WAIT);
        self.not_before = (self.failures > 0).then(|| Instant::now() + wait);
    }

    /// Returns how long the server must not be started yet. `None` if it may be started.
    fn wait(&self) -> Option<Duration> {
        let wait = self.not_before?.checked_duration_since(Instant::now())?;
        (!wait.is_zero()).then_some(wait)
    }
}

impl Live {
    fn new(service: Service, group: ProcessGroup) -> Self {
        Self { service, group, since: Instant::now(), tools: Arc::default() }
    }

    fn is_connected(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    fn connection(&self) -> Connection {
        Connection { peer: self.service.peer().clone(), tools: Arc::clone(&self.tools) }
    }

    async fn close(mut self) {
        if let Err(error) = self.service.close().await {
            tracing::warn!(%error, "an MCP server did not stop cleanly");
        }
        self.group.end();
    }
}

/// The process group of a server that was started as a program, by its leader's id. With a group of its own, whatever
/// the program starts ends with it, and a Ctrl+C at the terminal reaches this server first.
struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    fn end(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.0.take().and_then(|leader| rustix::process::Pid::from_raw(leader.try_into().ok()?)) {
            // It fails if no process is left, which is the goal.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

impl McpServer {
    /// How long the server may take to start, or to answer for the first time.
    fn start_timeout(&self) -> Span {
        match self {
            Self::Command { start_timeout: Some(limit), .. } => *limit,
            Self::Command { .. } | Self::Url { .. } => TO_START,
        }
    }

    async fn connect(
        &self,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Live, Box<dyn std::error::Error + Send + Sync>> {
        match self {
            Self::Command { command, args, env, .. } => {
                let mut process = Command::new(command);
                process.args(args).env_clear().envs(env);
                for name in INHERITED {
                    if let (false, Some(value)) = (env.contains_key(name), std::env::var_os(name)) {
                        process.env(name, value);
                    }
                }
                #[cfg(unix)]
                process.process_group(0);
                let (transport, _) = TokioChildProcess::builder(process).stderr(Stdio::null()).spawn()?;
                // Ends the group even if the connection fails.
                let group = ProcessGroup(transport.id());
                Ok(Live::new(().serve(transport).await?, group))
            }
            Self::Url { url, .. } => {
                let config =
                    StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers.clone());
                // This transport follows no redirect to another origin, so the headers go nowhere else.
                let service = ().serve(StreamableHttpClientTransport::from_config(config)).await?;
                Ok(Live::new(service, ProcessGroup(None)))
            }
        }
    }
}

/// Formats a wait in whole seconds, rounded up.
fn seconds(wait: Duration) -> String {
    format!("{} s", wait.as_secs_f64().ceil())
}
