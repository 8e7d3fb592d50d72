//! What a handler decides in place of people: a review is made and resolved in the same commit, so that it is on the record
//! with everything that would have been shown, and nobody waits.

use serde_json::json;
use shared::JsonMap;
use shared::decision::{ActionDecision, Via};
use shared::definition::ChoiceKind;
use shared::error::{FlowCode, RunError};
use shared::review::Outcome;

use super::asking::{Asking, Handled};
use super::calls::answer_all;
use super::content::Content;
use super::decision_scope::Remembered;
use crate::engine::builder::Builder;
use crate::engine::next::{Answer, NodeAnswer, Then};
use crate::engine::question::Subject;

impl Builder<'_> {
    /// A handler decides. At a human node the first accept option is taken, or it stops with the reason; calls are all
    /// approved that may be, or all rejected with it.
    pub(super) fn handled(&mut self, asking: Asking, content: Content, handled: &Handled) {
        match asking.subject {
            Subject::Node { .. } => self.node_handled(asking, content, handled),
            _ => self.actions_handled(asking, content, handled),
        }
    }

    fn node_handled(&mut self, asking: Asking, content: Content, handled: &Handled) {
        let Handled { approves, ref reason, via, ref changes } = *handled;
        let reason = reason.as_deref();
        let (kind, outcome) =
            if approves { (ChoiceKind::Accept, Outcome::Accepted) } else { (ChoiceKind::Stop, Outcome::Stopped) };
        let option = content.options.iter().find(|option| option.kind == kind).cloned();
        if approves && option.is_none() {
            let message = "nothing here can be approved: there is no option of kind `accept`".to_owned();
            let node = self.state.step_of(&asking.subject).map(|step| step.node.clone());
            let error = RunError { code: FlowCode::FlowInvalid, message, node };
            return self.answer(asking.subject, Answer::Failed(error));
        }
        let (id, subject) = (asking.review, asking.subject.clone());
        let put_in = match self.fit_changes(id, &subject, changes) {
            Ok(put_in) => put_in,
            Err(message) => {
                let error = RunError { code: FlowCode::FlowInvalid, message, node: None };
                return self.answer(subject, Answer::Failed(error));
            }
        };
        self.resolve_at_once(asking, content, outcome, handled, None);
        self.tell_put_in(id, &put_in);
        let nothing = JsonMap::new();
        let remembered = Remembered {
            option: option.as_ref().map(|option| option.id.as_str()),
            kind: Some(kind),
            text: None,
            comment: reason,
            edits: &put_in.edits,
            metadata: &nothing,
            by: &[],
            at: self.now,
            via,
        };
        let label = option.as_ref().map(|option| option.label.as_str());
        let what = if approves { label.or(reason) } else { reason.or(label) };
        let by = if via == Via::Judge { "by a judge" } else { "automatically" };
        let note = what.map(|what| format!("{what} ({by})"));
        let then = if approves {
            Then::GoOn { edits: put_in.edits.clone() }
        } else {
            let message = option.as_ref().and_then(|option| option.message.as_deref());
            Then::Stop { message: reason.or(message).or(label).unwrap_or("Rejected.").to_owned() }
        };
        self.answer(subject, Answer::Node(NodeAnswer { decision: json!(remembered), note, then }));
    }

    fn actions_handled(&mut self, asking: Asking, content: Content, handled: &Handled) {
        let mut decisions = answer_all(&content.actions, handled.approves, handled.reason.as_deref());
        for (id, arguments) in &handled.changes.arguments {
            decisions.insert(id.clone(), ActionDecision::Edit { arguments: arguments.clone() });
        }
        let instructions = handled.changes.instructions.clone();
        let subject = asking.subject.clone();
        let answer = self.rule(&subject, &decisions, instructions);
        self.resolve_at_once(asking, content, Outcome::Decided, handled, answer.findings());
        self.answer(subject, answer);
    }
}
