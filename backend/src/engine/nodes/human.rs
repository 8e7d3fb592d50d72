//! Human nodes: where their answers lead.

use shared::JsonMap;
use shared::error::FlowCode;
use shared::id::NodeId;
use shared::run::Step;

use crate::engine::builder::{Builder, failure};
use crate::engine::next::{NodeAnswer, StepEnd, Then};
use crate::engine::phase::Phase;
use crate::engine::question::Subject;
use crate::engine::scope;

impl Builder<'_> {
    /// Enters a human node, and asks its handlers in their order.
    pub(in crate::engine) fn enter_human(&mut self, branch: u32, step: Step) {
        self.settle(branch, Phase::Human { step });
        self.ask(Subject::Node { branch });
    }

    /// Applies the answer of a person, a handler or a timer.
    pub(in crate::engine) fn human_answered(&mut self, branch: u32, mut step: Step, answer: NodeAnswer) {
        let NodeAnswer { decision, note, then } = answer;
        self.state.decisions.insert(step.node.clone(), decision);
        step.note = Some(note);
        let end = match then {
            Then::GoOn { edits } => StepEnd::Finished { writes: edits },
            Then::Write { text, edits } => StepEnd::Finished { writes: self.written(&step.node, &text, edits) },
            Then::Correct { message } => StepEnd::Corrects { node: self.flow.source_of(&step.node), message },
            Then::Goto(node) => StepEnd::LeftFor { node },
            Then::Stop { message } => {
                let human = self.flow.node(&step.node).and_then(|node| node.kind.human());
                match human.and_then(|human| human.on_reject.clone()) {
                    Some(node) => StepEnd::LeftFor { node },
                    None => StepEnd::Stopped { error: failure(FlowCode::FlowHumanRejected, &step.node, message) },
                }
            }
        };
        self.end(branch, step, end);
    }

    /// Returns the writes of a free text: it goes to all write keys of the node, except those that are edited.
    fn written(&self, id: &NodeId, text: &str, edits: JsonMap) -> JsonMap {
        let keys = self.flow.node(id).map(|node| scope::write_keys(self.flow, id, node)).unwrap_or_default();
        let text = keys.into_iter().filter(|key| !edits.contains_key(key)).map(|key| (key, text.into()));
        let mut writes: JsonMap = text.collect();
        writes.extend(edits);
        writes
    }
}
