//! Which reviews and runs a receiver in the settings is notified of: a program, or a channel in Slack.

use serde::Deserialize;
use shared::definition::Severity;
use shared::id::FlowId;
use shared::log::AnnouncedSubject;
use shared::review::{Review, ReviewKind};

/// A filter of a receiver, such as `[notifications.slack.channels."#NAME"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Only reviews and runs of these flows; if empty, of all, and questions without a flow.
    pub flows: Vec<FlowId>,
    /// Only reviews for one of these roles; if empty, for all.
    pub roles: Vec<String>,
    /// Only reviews of these kinds; if empty, of all.
    pub kinds: Vec<ReviewKind>,
    /// Only reviews with one of these severities; if empty, with any.
    pub severities: Vec<Severity>,
}

impl Filter {
    /// Whether the filter lets this pass. Of a run, only its flow counts.
    pub(super) fn passes(&self, about: &AnnouncedSubject) -> bool {
        match about {
            AnnouncedSubject::Review(review) => self.passes_review(review),
            AnnouncedSubject::Run(run) => self.flows.is_empty() || self.flows.contains(&run.flow),
        }
    }

    pub(super) fn passes_review(&self, review: &Review) -> bool {
        let Self { flows, roles, kinds, severities } = self;
        (flows.is_empty() || review.flow.as_ref().is_some_and(|flow| flows.contains(flow)))
            && (roles.is_empty() || shared::inbox::roles(review).any(|role| roles.iter().any(|one| one == role)))
            && (kinds.is_empty() || kinds.contains(&review.kind))
            && (severities.is_empty() || severities.contains(&review.stakes.severity))
    }
}
