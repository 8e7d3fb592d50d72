//! Agents that work for others: as a tool of another agent or of a tool node, or for a turn of a team. Their
//! conversation is in a separate branch at the same node; the caller gets its outcome (`conversation_end.rs`).

use serde_json::Value;
use shared::definition::ToolKind;
use shared::error::{FlowCode, FlowError};
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::conversation::{Conversation, Message, Purpose};
use crate::engine::next::Reply;
use crate::engine::phase::Phase;

/// The maximum depth of calls between agents.
const MAX_DEPTH: usize = 8;
/// The maximum number of calls between agents in one run.
const MAX_TASKS: u32 = 500;

impl Builder<'_> {
    /// Starts the agent that is called as a tool with its task.
    pub(super) fn begin_task(&mut self, branch: u32, step: &Step, call: &str) {
        let begun = self.task_of(branch, step, call);
        match begun {
            Ok(conversation) => {
                let number = self.next_number();
                self.begin(number, step.clone(), conversation);
            }
            Err(error) => self.reply_to(branch, call, Reply::Fails(error.code, error.message)),
        }
    }

    fn task_of(&mut self, branch: u32, step: &Step, id: &str) -> Result<Conversation, FlowError> {
        let refuse = |why: String| Err(failure(FlowCode::ToolFailed, &step.node, why));
        let calls = self.state.phase(branch).map(Phase::calls).unwrap_or_default();
        let Some(call) = calls.iter().find(|call| call.id == id).cloned() else {
            return refuse("there is no such call".to_owned());
        };
        if self.state.tasks_begun >= MAX_TASKS {
            return refuse(format!("agents have called each other {MAX_TASKS} times in this run: do it yourself"));
        }
        self.state.tasks_begun += 1;
        if self.depth(branch) >= MAX_DEPTH {
            return refuse(format!("calls between agents are nested at most {MAX_DEPTH} deep: do it yourself"));
        }
        let tool = self.flow.of(&step.node).tool(&call.tool).map(|tool| tool.kind.clone());
        let Some(ToolKind::Agent(name)) = tool else { return refuse(format!("there is no tool `{}`", call.tool)) };
        let task = call.arguments.get("task").and_then(Value::as_str).unwrap_or_default();
        let messages = vec![Message::User { text: task.to_owned() }];
        let team = self.state.team_of(branch).and_then(|team| self.state.phase(team)?.team()).cloned();
        let conversation = match team {
            Some(team) => self.conversation_of(step, &name, &team, messages)?,
            None => self.converse(step, &name, messages)?,
        };
        let purpose = Purpose::Task { of: branch, call: call.id.clone() };
        Ok(Conversation { purpose, id_prefix: format!("{}-", call.id), ..conversation })
    }

    /// Returns the number of branches in the chain from a branch up to the outermost one that waits for it, both
    /// included.
    fn depth(&self, branch: u32) -> usize {
        std::iter::successors(Some(branch), |branch| self.state.parent_of(*branch)).count()
    }
}
