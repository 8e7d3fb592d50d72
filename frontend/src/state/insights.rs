//! The statistics page: its query in the URL, and its plots as SVG and as tables.

use serde::{Deserialize, Serialize};
use shared::review::ReviewKind;
use shared::statistics::{Figures, GroupBy, StatisticsGroup, StatisticsQuery};
use shared::time::Timestamp;

use super::{filter, words};

/// The selectable ranges: days and label.
pub const RANGES: [(u32, &str); 5] = [(1, "24 h"), (7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year")];
/// The default range, in days.
const USUAL: u32 = 30;
/// The selectable groupings of the table: value and label.
pub const SPLITS: [(GroupBy, &str); 5] = [
    (GroupBy::Flow, "Flow"),
    (GroupBy::Tool, "Tool"),
    (GroupBy::Agent, "Agent"),
    (GroupBy::Kind, "Kind"),
    (GroupBy::Reviewer, "Reviewer"),
];
/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

/// The filter in the URL.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsightsFilter {
    /// The length of the range up to now, in days; `None` for the default.
    pub days: Option<u32>,
    pub flow: Option<String>,
    pub tool: Option<String>,
    pub agent: Option<String>,
    pub kind: Option<ReviewKind>,
    pub role: Option<String>,
    pub reviewer: Option<String>,
    /// The grouping of the table; `None` for the default.
    pub split: Option<GroupBy>,
}

impl InsightsFilter {
    /// Reads the filter from query parameters. Invalid values, and those that cannot be selected, are ignored.
    pub fn read<'a, N: AsRef<str>>(parts: impl IntoIterator<Item = (N, &'a str)>) -> Self {
        let mut filter: Self = filter::read(parts);
        filter.days = filter.days.filter(|days| RANGES.iter().any(|(one, _)| one == days));
        filter.split = filter.split.filter(|split| SPLITS.iter().any(|(one, _)| one == split));
        filter
    }

    pub fn address(&self) -> String {
        format!("/insights{}", shared::client::query_string(self))
    }

    pub fn days(&self) -> u32 {
        self.days.unwrap_or(USUAL)
    }

    /// The grouping of the table.
    pub fn split(&self) -> GroupBy {
        self.split.unwrap_or(GroupBy::Flow)
    }

    /// The time that one bar of the plots covers.
    pub fn bar(&self) -> GroupBy {
        match self.days() {
            ..=1 => GroupBy::Hour,
            2..=90 => GroupBy::Day,
            _ => GroupBy::Week,
        }
    }

    /// The request for statistics grouped by `by`. The range begins at the start of a bar.
    pub fn query(&self, by: GroupBy, now: Timestamp) -> StatisticsQuery {
        let from = Timestamp(now.0.saturating_sub(i64::from(self.days()) * DAY));
        StatisticsQuery {
            from: self.bar().begin(from).or(Some(from)),
            flow: self.flow.clone(),
            tool: self.tool.clone(),
            agent: self.agent.clone(),
            kind: self.kind,
            role: self.role.clone(),
            reviewer: self.reviewer.clone(),
            by: Some(by),
            ..StatisticsQuery::default()
        }
    }

    /// The same filter, narrowed to one row of the table.
    pub fn narrowed(&self, by: GroupBy, key: &str) -> Self {
        filter::with(self, by.as_str(), Some(key))
    }
}

/// The outcomes of reviews in stacking order: the CSS class of the colour, the label and the count.
pub fn parts(figures: &Figures) -> [(&'static str, &'static str, u64); 7] {
    [
        ("go", "Approved", figures.approved),
        ("warn", "Sent back or edited", figures.corrected),
        ("stop", "Rejected", figures.rejected),
        ("accent", "Answered", figures.answered),
        ("late", "Expired", figures.expired),
        ("back", "Withdrawn", figures.withdrawn),
        ("wait", "Pending", figures.pending),
    ]
}

/// Formats a fraction as `87 %`, or as a dash if there is none.
pub fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// Formats a duration in milliseconds, or a dash if there is none.
pub fn took(ms: Option<u64>) -> String {
    ms.map_or_else(|| "–".to_owned(), words::duration_ms)
}

/// The figures of one bar of the plots.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The start of its time in words.
    pub label: String,
    pub figures: Figures,
}

/// A bar for each hour, day or week from `from` to `to`, including those without reviews.
pub fn bars(groups: &[StatisticsGroup], by: GroupBy, from: Timestamp, to: Timestamp) -> Vec<Bar> {
    let (Some(first), Some(length)) = (by.begin(from), by.length()) else { return Vec::new() };
    let starts = std::iter::successors(Some(first), |at| Some(Timestamp(at.0 + length)));
    let starts = starts.take_while(|at| *at < to);
    let mut groups = groups.iter().peekable();
    let bars = starts.map(|at| {
        // The server formats timestamps in the same way.
        let found = groups.next_if(|group| group.key == at.to_string());
        Bar { label: label(at, by), figures: found.map(|group| group.figures.clone()).unwrap_or_default() }
    });
    bars.collect()
}

/// `14:00 UTC` or `23 Nov UTC`. Groups are in UTC, while other times on the page are in the reader's time zone.
fn label(at: Timestamp, by: GroupBy) -> String {
    let text = at.to_string();
    if by == GroupBy::Hour {
        return format!("{} UTC", text.get(11..16).unwrap_or_default());
    }
    let month = text.get(5..7).and_then(|month| month.parse::<usize>().ok()).unwrap_or(1);
    let day = text.get(8..10).unwrap_or_default().trim_start_matches('0');
    format!("{day} {} UTC", words::MONTHS[(month - 1) % 12])
}

/// A stack of rectangles for each bar, as SVG for a view box as wide as the number of bars and 100 high, and the number
/// at the full height. It contains only numbers and words of this program.
pub fn stacked(bars: &[Bar]) -> (String, u64) {
    let most = bars.iter().map(|bar| bar.figures.requests).max().unwrap_or(0);
    let top = round_up(most);
    let mut shapes = Vec::new();
    for (index, Bar { label, figures }) in bars.iter().enumerate() {
        let counted: Vec<_> = parts(figures).into_iter().filter(|(.., count)| *count > 0).collect();
        let words: Vec<_> = counted.iter().map(|(_, word, count)| format!("{count} {}", word.to_lowercase())).collect();
        let mut below = 0;
        let stack = counted.into_iter().map(|(class, _, count)| {
            below += count;
            rectangle(index, class, height(below, top), height(count, top))
        });
        shapes.push(group(index, label, &words.join(", "), &stack.collect::<String>()));
    }
    (shapes.concat(), top)
}

/// For each bar, a rectangle for the median and one for the 95th percentile of the response time, as SVG; and the time
/// at the full height, in milliseconds.
pub fn times(bars: &[Bar]) -> (String, u64) {
    let top = bars.iter().filter_map(|bar| bar.figures.response_ms.p95).max().unwrap_or(0);
    let mut shapes = Vec::new();
    for (index, Bar { label, figures }) in bars.iter().enumerate() {
        let (Some(half), Some(most)) = (figures.response_ms.p50, figures.response_ms.p95) else { continue };
        let words = format!("median {}, 95th percentile {}", took(Some(half)), took(Some(most)));
        let bar = |class, ms| rectangle(index, class, height(ms, top), height(ms, top));
        shapes.push(group(index, label, &words, &(bar("p95", most) + &bar("p50", half))));
    }
    (shapes.concat(), top)
}

/// One bar with its tooltip, and a transparent area of full height so that the pointer finds even a low bar.
fn group(index: usize, label: &str, words: &str, shapes: &str) -> String {
    let place = format!("<rect class=\"hit\" x=\"{index}\" y=\"0\" width=\"1\" height=\"100\"/>");
    format!("<g><title>{label}: {words}</title>{place}{shapes}</g>")
}

fn rectangle(index: usize, class: &str, top: f64, height: f64) -> String {
    format!("<rect class=\"{class}\" x=\"{index}.14\" y=\"{:.2}\" width=\"0.72\" height=\"{height:.2}\"/>", 100.0 - top)
}

#[expect(clippy::cast_precision_loss, reason = "a hundredth of a pixel does not matter")]
fn height(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// Rounds up to a number that is easy to read on a scale: 1, 2, 3, 4, 5, 6, 8, 10, 20, ….
fn round_up(number: u64) -> u64 {
    let steps = std::iter::successors(Some(1_u64), |step| step.checked_mul(10));
    let mut all = steps.flat_map(|step| [1, 2, 3, 4, 5, 6, 8].map(|times| step.saturating_mul(times)));
    all.find(|round| *round >= number).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_read_and_written_alike() {
        let address = [("days", "7"), ("kind", "tool_calls"), ("split", "tool"), ("reviewer", "ana"), ("flow", "")];
        let filter = InsightsFilter::read(address);
        assert_eq!(filter.address(), "/insights?days=7&kind=tool_calls&reviewer=ana&split=tool");
        let odd = [("days", "x"), ("days", "3"), ("kind", "x"), ("split", "x"), ("split", "hour")];
        assert_eq!(InsightsFilter::read(odd), InsightsFilter::default());
        assert_eq!(filter.narrowed(GroupBy::Tool, "send").tool.as_deref(), Some("send"));
    }

    #[test]
    fn a_time_in_which_nothing_was_asked_has_its_bar() {
        let figures = Figures { requests: 3, approved: 2, pending: 1, ..Figures::default() };
        let groups = [StatisticsGroup { key: at("2026-11-21T00:00:00Z").to_string(), figures }];
        let bars = bars(&groups, GroupBy::Day, at("2026-11-20T10:00:00Z"), at("2026-11-23T04:00:00Z"));
        let labels: Vec<_> = bars.iter().map(|bar| (bar.label.as_str(), bar.figures.requests)).collect();
        assert_eq!(labels, [("20 Nov UTC", 0), ("21 Nov UTC", 3), ("22 Nov UTC", 0), ("23 Nov UTC", 0)]);
        let (shapes, top) = stacked(&bars);
        assert_eq!((top, shapes.matches("<g>").count()), (3, 4));
        assert!(shapes.contains("<title>21 Nov UTC: 2 approved, 1 pending</title>"), "{shapes}");
        assert!(shapes.contains(r#"class="go" x="1.14" y="33.33" width="0.72" height="66.67""#), "{shapes}");
        assert!(shapes.contains(r#"class="wait" x="1.14" y="0.00" width="0.72" height="33.33""#), "{shapes}");
    }

    #[test]
    fn scales_end_at_numbers_that_are_read_at_once() {
        assert_eq!([0, 1, 3, 11, 50, 51, 999].map(round_up), [1, 1, 3, 20, 50, 60, 1000]);
        assert_eq!((percent(Some(0.875)), percent(None)), ("88 %".to_owned(), "–".to_owned()));
    }
}
