//! The decision of a human node in templates and conditions: `decision`, and `decisions["<node>"]`. Answers of people,
//! of timers and withdrawals have the same members.

use serde::Serialize;
use shared::JsonMap;
use shared::decision::Via;
use shared::definition::ChoiceKind;
use shared::id::Username;
use shared::time::Timestamp;

use crate::engine::builder::Builder;

/// The decision of a human node, as later steps see it.
#[derive(Serialize)]
pub(super) struct Remembered<'a> {
    pub option: Option<&'a str>,
    /// The option, if it is one of the alternatives.
    pub alternative: Option<&'a str>,
    pub kind: Option<ChoiceKind>,
    pub text: Option<&'a str>,
    pub comment: Option<&'a str>,
    pub edits: &'a JsonMap,
    pub metadata: &'a JsonMap,
    pub by: &'a [Username],
    pub at: Timestamp,
    pub via: Via,
}

impl Builder<'_> {
    /// Adds the metadata of a decision to that of the run, for all later steps. Members that the launch gave stay as
    /// they are.
    pub(super) fn merge_metadata(&mut self, metadata: &JsonMap) {
        let state = &mut self.state;
        let added = metadata.iter().filter(|(key, _)| !state.launch_metadata.contains(*key));
        state.context.metadata.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    }
}
