//! Checks for handlers, programs of guardrails and MCP servers that cannot be reached from this server.

use std::sync::Arc;

use shared::definition::{Flow, Guardrails, Handler, ToolKind};
use shared::error::{FlowCode, Mistake, pointer};

use super::Checker;
use crate::flow::expressions::gates;

/// The reason why no webhook can be asked.
const NO_WEBHOOKS: &str = "webhooks need a secret to know who calls them: set COUNTERSIGN_HANDLER_SECRET \
                           to a secret (`whsec_` and the base64 of 24 to 64 random bytes)";

/// The handlers that can be asked, and the tools that can be called, on a server or in a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Whether the person who runs the flow is at a terminal.
    pub terminal: bool,
    /// Whether there is a secret to sign requests to webhooks.
    pub webhooks: bool,
    /// Whether people can be reached in a chat, or are where the flow runs.
    pub chats: bool,
    /// The MCP servers of the settings, by name.
    pub mcp: Arc<[String]>,
}

/// Reports each handler, and each program of a guardrail, that cannot be asked. Warns of tools whose MCP server the
/// settings do not name: they may name it before the flow is started.
pub fn check(checker: &mut Checker<'_>, reach: Option<&Reach>) {
    let Some(reach) = reach else { return };
    for mistake in unreachable(checker.flow, reach) {
        checker.invalid(&mistake.path, mistake.message);
    }
    for (name, tool) in &checker.flow.tools {
        if let ToolKind::Mcp(mcp) = &tool.kind
            && !reach.mcp.contains(&mcp.server)
        {
            let server = &mcp.server;
            let guess = checker.guess(server, reach.mcp.iter().map(String::as_str));
            let message = format!(
                "the settings have no MCP server `{server}`, so calls of this tool will fail; add `[mcp.{server}]`{guess}"
            );
            checker.warn(&pointer(["tools", name, "mcp", "server"]), message);
        }
    }
}

/// Returns a mistake for each handler, and each program of a guardrail, that cannot be asked.
pub fn unreachable(flow: &Flow, reach: &Reach) -> Vec<Mistake> {
    let handlers = handlers(flow).into_iter().filter_map(|(path, handler)| Some((path, reason(handler, reach)?)));
    let guardrails = guardrail_webhooks(flow).into_iter().filter(|_| !reach.webhooks).map(|path| (path, NO_WEBHOOKS));
    handlers.chain(guardrails).map(|(path, why)| Mistake::new(path, FlowCode::FlowInvalid.as_str(), why)).collect()
}

/// Returns the places of guardrails that ask a program.
fn guardrail_webhooks(flow: &Flow) -> Vec<String> {
    let Some(Guardrails::List(settings)) = &flow.guardrails else { return Vec::new() };
    let asks = settings.iter().enumerate().filter(|(_, setting)| {
        let settings = setting.settings();
        settings.is_some_and(|guardrail| guardrail.webhook.is_some())
    });
    asks.map(|(index, _)| format!("/guardrails/{index}/webhook")).collect()
}

/// Returns why a handler cannot be asked, with the remedy. `None` if it can.
fn reason(handler: &Handler, reach: &Reach) -> Option<&'static str> {
    match handler {
        Handler::Cli if !reach.terminal => Some(
            "the server has no terminal: `cli` is for `countersign flow run`; write `human` to ask people in \
             the console",
        ),
        Handler::Webhook(_) if !reach.webhooks => Some(NO_WEBHOOKS),
        Handler::Slack(_) if !reach.chats => Some(
            "this server is not connected to Slack; set it up in `[notifications.slack]`, or write \
             `human`",
        ),
        _ => None,
    }
}

/// Returns all handlers of a flow, with their places.
pub fn handlers(flow: &Flow) -> Vec<(String, &Handler)> {
    let gates = gates(flow).map(|(path, gate)| (path, gate.handlers.as_deref()));
    let nodes = flow.humans().map(|(id, human)| (pointer(["nodes", id, "human"]), human.handlers.as_deref()));
    let defaults = ("/defaults".to_owned(), flow.defaults.handlers.as_deref());
    let mut found = Vec::new();
    for (path, handlers) in std::iter::once(defaults).chain(nodes).chain(gates) {
        let handlers = handlers.unwrap_or_default().iter().enumerate();
        found.extend(handlers.map(|(index, handler)| (format!("{path}/handlers/{index}"), handler)));
    }
    found
}
