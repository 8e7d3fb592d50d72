//! The state of the page around the rows of the inbox.

use shared::access::Principal;
use shared::id::ReviewId;

use crate::state::outbox::Stage;

/// What rows need to know about the page. It is one source that each row follows, rather than one for each part.
#[derive(Debug, Clone, Default)]
pub struct Around {
    pub open: Option<ReviewId>,
    /// The review selected with the keyboard.
    pub at: Option<ReviewId>,
    /// The one row that Tab leads to.
    pub stop: Option<ReviewId>,
    /// The suffix of the rows' addresses: the filter.
    pub search: String,
    /// The number of rows in the whole list; `None` if unknown.
    pub total: Option<u64>,
    /// The person who is logged in.
    pub viewer: Option<Principal>,
    pub selected: Vec<ReviewId>,
    pub drafted: Vec<ReviewId>,
    /// How far their decisions on these reviews have come.
    pub stages: Vec<(ReviewId, Stage)>,
}

/// The part of [`Around`] that concerns one row.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of the row, and any may go with any")]
pub struct Here {
    pub open: bool,
    pub at: bool,
    pub stop: bool,
    pub drafted: bool,
    pub sending: bool,
    pub unsent: bool,
    pub search: String,
    pub total: Option<u64>,
    pub me: Option<String>,
}

impl Around {
    /// How far the decision on this review has come, if there is one here.
    pub fn stage(&self, id: ReviewId) -> Option<&Stage> {
        self.stages.iter().find(|(decided, _)| *decided == id).map(|(_, stage)| stage)
    }

    /// The part that concerns this row.
    pub fn of(&self, id: ReviewId) -> Here {
        let is = |other: Option<ReviewId>| other == Some(id);
        Here {
            open: is(self.open),
            at: is(self.at),
            stop: is(self.stop),
            drafted: self.drafted.contains(&id),
            sending: matches!(self.stage(id), Some(Stage::Held(_) | Stage::Sending)),
            unsent: matches!(self.stage(id), Some(Stage::Unsent(_))),
            search: self.search.clone(),
            total: self.total,
            me: self.viewer.as_ref().map(|viewer| viewer.username.to_string()),
        }
    }
}
