//! Grants in a transaction: which apply to a run, and which are given, ended with the run, or revoked.

use std::time::Duration;

use shared::access::{Act, Principal};
use shared::decision::{ActionDecision, Verdict};
use shared::error::{Mistake, pointer};
use shared::grant::{Grant, GrantScope};
use shared::id::{FlowId, GrantId, RunId, Username};
use shared::log::{EventData, OfGrant};
use shared::time::Timestamp;

use super::super::{CommitError, Committed};
use super::group::{ChangeResult, Group};
use super::rights::allow;
use crate::clock::Moment;
use crate::engine::{Granted, Input, Refusal};

impl Group {
    /// Returns the grants that may apply to calls of a run, each with the current rights of the person who gave it.
    pub fn granted(&self, flow: &FlowId, version: u32, run: RunId, now: Timestamp) -> Vec<Granted> {
        let here = |grant: &&Grant| match grant.scope {
            GrantScope::Run => grant.run_id == run,
            GrantScope::Flow => grant.flow == *flow && grant.version == version,
        };
        let hold = self.grants.values().filter(here).filter(|grant| now < grant.expires_at);
        let granted = hold.filter_map(|grant| {
            let giver = self.active(&grant.given_by).ok()?.principal(None);
            Some(Granted { grant: grant.clone(), giver })
        });
        granted.collect()
    }

    /// Adds the grants that a run gave, and removes those that its end makes useless.
    pub fn keep_grants(&mut self, run: RunId, given: Vec<Grant>, over: bool) {
        for grant in given {
            self.grants.insert(grant.id, grant.clone());
            self.out.new_grants.insert(grant.id, grant);
        }
        if over {
            let useless = |grant: &Grant| grant.scope == GrantScope::Run && grant.run_id == run;
            let ids: Vec<GrantId> = self.grants.values().filter(|grant| useless(grant)).map(|grant| grant.id).collect();
            for id in ids {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: GrantId) {
        self.grants.remove(&id);
        if self.out.new_grants.remove(&id).is_none() {
            self.out.ended_grants.insert(id);
        }
    }

    /// Revokes all grants that a person has given.
    pub fn revoke_grants_of(&mut self, by: Option<&Principal>, giver: &Username, moment: Moment) {
        let given: Vec<Grant> = self.grants.values().filter(|grant| grant.given_by == *giver).cloned().collect();
        for grant in given {
            self.forget(grant.id);
            self.emit(by, &EventData::GrantRevoked(OfGrant { grant: Box::new(grant) }), moment);
        }
    }

    pub fn revoke_grant(&mut self, by: Option<&Principal>, id: GrantId, moment: Moment) -> ChangeResult {
        let grant = self.grants.get(&id).cloned().ok_or(CommitError::NotFound)?;
        allow(by, Act::RevokeGrant(&grant.given_by))?;
        self.forget(id);
        self.emit(by, &EventData::GrantRevoked(OfGrant { grant: Box::new(grant) }), moment);
        Ok(Committed::Done)
    }
}

/// Limits the lifetimes of the grants that a decision wants to give by the settings: a default that is longer is
/// shortened, and a longer wish is refused. The request remains as it was sent, because the record has its hash.
pub(super) fn limit(input: &mut Input, longest: Duration) -> Result<(), Refusal> {
    let Input::Decide { request, longest_grant_ms, .. } = input else { return Ok(()) };
    let Verdict::Actions { decisions, .. } = &request.verdict else { return Ok(()) };
    let mut mistakes = Vec::new();
    for (id, decision) in decisions {
        let ActionDecision::Approve { remember: Some(remember) } = decision else { continue };
        let mut lifetime = remember.span();
        if remember.for_ms.is_none() && lifetime > longest {
            *longest_grant_ms = u64::try_from(longest.as_millis()).ok();
            lifetime = longest;
        }
        if lifetime.is_zero() || lifetime > longest {
            let place = pointer(["verdict", "decisions", id, "remember", "for_ms"]);
            let message = format!("must be more than zero, and at most {} ms", longest.as_millis());
            mistakes.push(Mistake::new(place, "limit", message));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Refusal::Invalid(mistakes)) }
}

#[cfg(test)]
mod tests {
    use shared::JsonMap;
    use shared::decision::{DecisionRequest, Via};
    use shared::grant::{DEFAULT_LIFETIME, Remember};
    use shared::id::ReviewId;

    use super::*;

    /// Returns an approval that asks to be remembered for this time.
    fn approval(for_ms: Option<u64>) -> Input {
        let remember = Some(Remember { scope: GrantScope::Run, for_ms, arguments: Vec::new() });
        let decisions = [("c1-1".to_owned(), ActionDecision::Approve { remember })].into();
        let request = DecisionRequest {
            revision: 1,
            digest: String::new(),
            verdict: Verdict::Actions { decisions, instructions: None },
            edits: JsonMap::new(),
            comment: None,
            metadata: JsonMap::new(),
        };
        let ana = Principal::new("ana".parse().unwrap(), [].into());
        Input::decide(ReviewId(uuid::Uuid::nil()), ana, Via::Human, request)
    }

    #[test]
    fn the_usual_time_of_a_grant_is_limited_to_the_longest_one_and_a_longer_wish_is_refused() {
        let hour = Duration::from_hours(1);
        for (asked, longest, limited) in [
            (None, DEFAULT_LIFETIME, Some(None)),
            (None, hour, Some(Some(3_600_000))),
            (Some(3_600_000), hour, Some(None)),
            (Some(3_600_001), hour, None),
            (Some(0), hour, None),
            (None, Duration::ZERO, None),
        ] {
            let (mut input, mut expected) = (approval(asked), approval(asked));
            if let Input::Decide { longest_grant_ms, .. } = &mut expected {
                *longest_grant_ms = limited.flatten();
            }
            let result = limit(&mut input, longest).ok().map(|()| input);
            assert_eq!(result, limited.map(|_| expected), "{asked:?} within {longest:?}");
        }
    }
}
