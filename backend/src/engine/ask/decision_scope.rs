//! What flows see of a decision at a human node, in templates and conditions: `decision`, and `decisions["<node>"]`. Of
//! a person's answer, of a timer's and of a withdrawal it has the same members.

use serde::Serialize;
use shared::JsonMap;
use shared::decision::Via;
use shared::definition::ChoiceKind;
use shared::id::Username;
use shared::time::Timestamp;

/// What is remembered.
#[derive(Serialize)]
pub(super) struct Remembered<'a> {
    pub option: Option<&'a str>,
    pub kind: Option<ChoiceKind>,
    pub text: Option<&'a str>,
    pub comment: Option<&'a str>,
    pub edits: &'a JsonMap,
    pub metadata: &'a JsonMap,
    pub by: &'a [Username],
    pub at: Timestamp,
    pub via: Via,
}
