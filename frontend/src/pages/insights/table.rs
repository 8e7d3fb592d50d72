//! The figures by flow, tool, agent, kind or reviewer. Each row links to the figures of its group.

use leptos::prelude::*;
use shared::statistics::{GroupBy, Statistics, StatisticsGroup};

use crate::state::insights::{InsightsFilter, SPLITS, parts, percent, took};
use crate::state::words::{self, thousands};

/// The tabs that select the grouping.
pub fn tabs(filter: &InsightsFilter) -> AnyView {
    let tabs = SPLITS.map(|(by, word)| {
        let address = InsightsFilter { split: Some(by), ..filter.clone() }.address();
        let current = (filter.split() == by).then_some("page");
        view! { <a href=address aria-current=current>{word}</a> }
    });
    view! { <nav class="tabs" aria-label="Breakdown by">{tabs}</nav> }.into_any()
}

/// A table with a row for each group and the share of each outcome.
pub fn groups(statistics: &Statistics, filter: &InsightsFilter, by: GroupBy) -> AnyView {
    if statistics.groups.is_empty() {
        let what = match by {
            GroupBy::Tool => "No tool call needed a decision.",
            GroupBy::Agent => "No agent asked for a decision.",
            GroupBy::Reviewer => "Nobody has decided anything.",
            GroupBy::Flow => "No flow asked anything.",
            _ => "Nothing was asked.",
        };
        return view! { <p class="none muted">{what}</p> }.into_any();
    }
    let most = statistics.groups.iter().map(|group| group.figures.requests).max().unwrap_or(1).max(1);
    let rows = statistics.groups.iter().map(|group| row(group, filter, by, most)).collect_view();
    let left_out = statistics.groups_left_out;
    let left_out =
        (left_out > 0).then(|| view! { <p class="none muted">{thousands(left_out)}" more have fewer requests."</p> });
    view! {
        <div class="wrap" tabindex="0" role="group" aria-label="Figures">
            <table class="table hover groups">
                <thead>
                    <tr>
                        <th>"Name"</th><th class="num">"Requested"</th><th class="stack"><span class="sr">"Outcomes"</span></th>
                        <th class="num">"Approved"</th><th class="num">"Median"</th><th class="num">"95th percentile"</th><th class="num">"Pending"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        {left_out}
    }
    .into_any()
}

fn row(group: &StatisticsGroup, filter: &InsightsFilter, by: GroupBy, most: u64) -> impl IntoView + use<> {
    let StatisticsGroup { key, figures } = group;
    let name = if by == GroupBy::Kind { words::kind(key) } else { key.clone() };
    let said: Vec<_> = parts(figures).into_iter().filter(|(.., count)| *count > 0).collect();
    let words: Vec<_> =
        said.iter().map(|(_, word, count)| format!("{} {}", thousands(*count), word.to_lowercase())).collect();
    let words = words.join(", ");
    let title = words.clone();
    let bars = said.into_iter().map(|(class, _, count)| {
        #[expect(clippy::cast_precision_loss, reason = "a hundredth of a pixel does not matter")]
        let width = count as f64 / most as f64 * 100.0;
        view! { <i class=class style:width=format!("{width:.2}%")></i> }
    });
    let address = filter.narrowed(by, key).address();
    view! {
        <tr>
            <th scope="row"><a href=address>{name}</a></th>
            <td class="num">{thousands(figures.requests)}</td>
            <td class="stack" title=title><span aria-hidden="true">{bars.collect_view()}</span><span class="sr">{words}</span></td>
            <td class="num">{percent(figures.approval_rate)}</td>
            <td class="num nowrap">{took(figures.response_ms.p50)}</td>
            <td class="num nowrap">{took(figures.response_ms.p95)}</td>
            <td class="num">{thousands(figures.pending)}</td>
        </tr>
    }
}
