//! The decision of a human node in templates and conditions: `decision`, and `decisions["<node>"]`. Answers of people,
//! of timers and withdrawals have the same members.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::JsonMap;
use shared::decision::Via;
use shared::definition::ChoiceKind;
use shared::error::Mistake;
use shared::id::Username;
use shared::review::Review;
use shared::time::Timestamp;

use crate::engine::builder::Builder;

/// The maximum length as JSON, in bytes, of the metadata that the decisions on a run add in all: the state holds it, and
/// so does each later review.
const MAX_ADDED: usize = 256 * 1024;

/// The decision of a human node, as later steps see it.
#[derive(Serialize)]
pub(super) struct Remembered<'a> {
    pub option: Option<&'a str>,
    /// The option, if it is one of the alternatives.
    pub alternative: Option<&'a str>,
    pub kind: Option<ChoiceKind>,
    pub text: Option<&'a str>,
    pub comment: Option<&'a str>,
    pub edits: JsonMap,
    pub metadata: JsonMap,
    pub by: &'a [Username],
    pub at: Timestamp,
    pub via: Via,
}

impl Remembered<'_> {
    /// Creates the decision of somebody who chose and said nothing.
    pub fn new(at: Timestamp, via: Via) -> Self {
        let (option, alternative, kind, text, comment) = (None, None, None, None, None);
        let (edits, metadata) = (JsonMap::new(), JsonMap::new());
        Self { option, alternative, kind, text, comment, edits, metadata, by: &[], at, via }
    }
}

impl Builder<'_> {
    /// Checks that the metadata of a decision, together with what earlier decisions have added and what pending votes
    /// may add, is within [`MAX_ADDED`].
    pub(super) fn check_added(&self, metadata: &JsonMap) -> Result<(), Mistake> {
        if metadata.is_empty() {
            return Ok(());
        }
        let given = self.state.launch_metadata.as_ref();
        let is_added = |key: &String| given.is_some_and(|given| !given.contains(key));
        let added = self.state.context.metadata.iter().filter(|(key, _)| is_added(key));
        let asked = self.state.questions.iter().filter_map(|question| self.reviews.get(&question.review));
        let votes = asked.flat_map(Review::votes).flat_map(|vote| &vote.metadata);
        // The longest value of each member counts: it is not known yet in which order they will replace each other.
        let mut lengths = BTreeMap::new();
        for (key, value) in added.chain(votes).chain(metadata) {
            let member = serde_json::to_vec(&(key, value)).map_or(usize::MAX, |json| json.len());
            let length = lengths.entry(key).or_insert(0);
            *length = member.max(*length);
        }
        if lengths.into_values().fold(0, usize::saturating_add) > MAX_ADDED {
            let message = format!(
                "with the metadata of earlier decisions and votes on this run, longer than {MAX_ADDED} bytes as JSON: \
                 leave it out, or put it into a comment"
            );
            return Err(Mistake::new("/metadata", "too_long", message));
        }
        Ok(())
    }

    /// Adds the metadata of a decision to that of the run, for all later steps. Members that the launch gave stay as
    /// they are.
    pub(super) fn merge_metadata(&mut self, metadata: &JsonMap) {
        let state = &mut self.state;
        let is_given = |key: &String| state.launch_metadata.as_ref().is_some_and(|given| given.contains(key));
        let added = metadata.iter().filter(|(key, _)| !is_given(key));
        state.context.metadata.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    }
}
