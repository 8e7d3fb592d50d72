//! Counts reviews, one after the other, for the total and for each group.

use std::collections::BTreeMap;

use shared::id::FlowId;
use shared::review::ReviewKind;
use shared::statistics::{EscalationReason, Figures, GroupBy, MAX_GROUPS, ResponseTimes, StatisticsGroup};
use shared::time::Timestamp;

use super::facts::{Became, Facts};

/// The largest number of groups. There are only more if someone makes them up.
const MAX_COUNTED: usize = 10_000;

pub(super) struct CountedReview {
    pub asked: Timestamp,
    pub flow: Option<FlowId>,
    pub kind: ReviewKind,
    pub facts: Facts,
}

#[derive(Default)]
pub(super) struct Count {
    by: Option<GroupBy>,
    all: CountedGroup,
    groups: BTreeMap<String, CountedGroup>,
}

#[derive(Default)]
struct CountedGroup {
    figures: Figures,
    response_ms: Vec<u64>,
}

/// The error if there are more than [`MAX_COUNTED`] groups.
pub(super) struct TooManyGroups;

impl Count {
    pub fn new(by: Option<GroupBy>) -> Self {
        Self { by, ..Self::default() }
    }

    pub fn add(&mut self, row: &CountedReview) -> Result<(), TooManyGroups> {
        self.all.add(row);
        for key in self.by.iter().flat_map(|by| keys(*by, row)) {
            if self.groups.len() >= MAX_COUNTED && !self.groups.contains_key(&key) {
                return Err(TooManyGroups);
            }
            self.groups.entry(key).or_default().add(row);
        }
        Ok(())
    }

    /// Returns the figures of all reviews, the groups, and the number of groups that were left out.
    pub fn finish(self) -> (Figures, Vec<StatisticsGroup>, u64) {
        let groups = self.groups.into_iter();
        let mut groups: Vec<_> = groups.map(|(key, group)| StatisticsGroup { key, figures: group.finish() }).collect();
        let mut left_out = 0;
        if self.by.is_some_and(|by| by.length().is_none()) {
            // The sort is stable: groups with equally many requests stay in alphabetical order.
            groups.sort_by_key(|group| std::cmp::Reverse(group.figures.requests));
            left_out = groups.split_off(groups.len().min(MAX_GROUPS)).len();
        }
        (self.all.finish(), groups, u64::try_from(left_out).unwrap_or(u64::MAX))
    }
}

/// The keys of the groups to which a review belongs.
fn keys(by: GroupBy, row: &CountedReview) -> Vec<String> {
    let CountedReview { asked, flow, kind, facts } = row;
    match by {
        GroupBy::Hour | GroupBy::Day | GroupBy::Week => by.begin(*asked).iter().map(ToString::to_string).collect(),
        GroupBy::Flow => flow.iter().map(ToString::to_string).collect(),
        GroupBy::Tool => facts.tools.iter().cloned().collect(),
        GroupBy::Agent => facts.agents.iter().cloned().collect(),
        GroupBy::Kind => vec![kind.as_str().to_owned()],
        GroupBy::Reviewer => facts.by.iter().map(ToString::to_string).collect(),
    }
}

impl CountedGroup {
    fn add(&mut self, row: &CountedReview) {
        let CountedReview { kind, facts, .. } = row;
        let figures = &mut self.figures;
        figures.requests += 1;
        let became = match facts.became {
            Became::Pending => &mut figures.pending,
            Became::Approved => &mut figures.approved,
            Became::Corrected => &mut figures.corrected,
            Became::Rejected => &mut figures.rejected,
            Became::Answered => &mut figures.answered,
            Became::Expired => &mut figures.expired,
            Became::Withdrawn => &mut figures.withdrawn,
        };
        *became += 1;
        match kind {
            ReviewKind::Clarification => figures.clarifications += 1,
            ReviewKind::Edit => {
                figures.edits.count += 1;
                figures.edits.changed += u64::from(facts.changed);
            }
            ReviewKind::Escalation => {
                figures.escalations += 1;
                if let Some(reason) = facts.reason {
                    *figures.escalations_by_reason.entry(reason).or_default() += 1;
                }
            }
            ReviewKind::Checkpoint => figures.checkpoints += 1,
            ReviewKind::Handoff => figures.handoffs += 1,
            _ => {}
        }
        for (guardrail, vetoes) in &facts.vetoes {
            *figures.vetoes.entry(guardrail.clone()).or_default() += vetoes;
        }
        if let Some(more) = &facts.judge {
            let judge = &mut figures.judge;
            judge.asked += more.asked;
            judge.decided += more.decided;
            judge.passed_on += more.passed_on;
            judge.failed += more.failed;
            judge.agreed += more.agreed;
            judge.disagreed += more.disagreed;
        }
        self.response_ms.extend(facts.response_ms);
    }

    fn finish(mut self) -> Figures {
        let decided = self.figures.approved + self.figures.corrected + self.figures.rejected;
        #[expect(clippy::cast_precision_loss, reason = "numbers of reviews are far below 2^53")]
        let rate = (decided > 0).then(|| self.figures.approved as f64 / decided as f64);
        self.figures.approval_rate = rate;
        for reason in EscalationReason::ALL {
            self.figures.escalations_by_reason.entry(*reason).or_default();
        }
        self.response_ms.sort_unstable();
        self.figures.response_ms = response_times(&self.response_ms);
        self.figures
    }
}

/// Computes response times from sorted times. A percentile is one of them (nearest rank).
fn response_times(sorted: &[u64]) -> ResponseTimes {
    let Some(count) = u64::try_from(sorted.len()).ok().filter(|count| *count > 0) else {
        return ResponseTimes::default();
    };
    let sum: u128 = sorted.iter().copied().map(u128::from).sum();
    let percentile = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    };
    let avg = u64::try_from(sum / u128::from(count)).ok();
    ResponseTimes { avg, p50: percentile(50), p95: percentile(95) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_somebody_took() {
        let hundred: Vec<u64> = (1..=100).collect();
        let times = response_times(&hundred);
        assert_eq!((times.avg, times.p50, times.p95), (Some(50), Some(50), Some(95)));
        let one = response_times(&[7]);
        assert_eq!((one.avg, one.p50, one.p95), (Some(7), Some(7), Some(7)));
        assert_eq!(response_times(&[]), ResponseTimes::default());
    }

    #[test]
    fn groups_beyond_the_limit_are_left_out_and_counted() {
        let row = |flow: usize| CountedReview {
            asked: Timestamp(0),
            flow: format!("f{flow}").parse().ok(),
            kind: ReviewKind::Approval,
            facts: Facts::default(),
        };
        let mut count = Count::new(Some(GroupBy::Flow));
        for flow in (0..MAX_GROUPS + 5).chain([MAX_GROUPS + 4]) {
            assert!(count.add(&row(flow)).is_ok());
        }
        let (all, groups, left_out) = count.finish();
        let most = format!("f{}", MAX_GROUPS + 4);
        assert_eq!((groups.len(), left_out, groups[0].key.as_str()), (MAX_GROUPS, 5, most.as_str()));
        assert_eq!((all.requests, groups[0].figures.requests), (106, 2));
        let mut count = Count::new(Some(GroupBy::Flow));
        assert!((0..=MAX_COUNTED).any(|flow| count.add(&row(flow)).is_err()));
    }
}
