//! Plots over time, each with its numbers as a table.

use leptos::prelude::*;
use shared::statistics::Figures;

use crate::state::insights::{Bar, parts, percent, stacked, times, took};
use crate::state::words::thousands;

pub fn outcomes(bars: &[Bar], all: &Figures) -> AnyView {
    let (shapes, top) = stacked(bars);
    let legend = parts(all).into_iter().filter(|(.., count)| *count > 0);
    let legend = legend.map(|(class, word, count)| {
        let mark = format!("mark {class}");
        view! { <li><i class=mark aria-hidden="true"></i>{word}" "<b>{thousands(count)}</b></li> }
    });
    let head =
        ["Requested", "Approved", "Sent back or edited", "Rejected", "Answered", "Expired", "Withdrawn", "Pending"];
    let row = |figures: &Figures| {
        let numbers = parts(figures).map(|(.., count)| thousands(count));
        std::iter::once(thousands(figures.requests)).chain(numbers).collect()
    };
    let table = table(bars, &head, &row);
    plot("Outcomes", legend.collect_view().into_any(), shapes, bars, thousands(top), table)
}

pub fn response_times(bars: &[Bar], all: &Figures) -> AnyView {
    let (shapes, top) = times(bars);
    let legend = [("p50", "Median", all.response_ms.p50), ("p95", "95th percentile", all.response_ms.p95)];
    let legend = legend.map(|(class, word, ms)| {
        let mark = format!("mark {class}");
        view! { <li><i class=mark aria-hidden="true"></i>{word}" "<b>{took(ms)}</b></li> }
    });
    let row = |figures: &Figures| {
        let times = figures.response_ms;
        vec![took(times.p50), took(times.p95), took(times.avg), percent(figures.approval_rate)]
    };
    let table = table(bars, &["Median", "95th percentile", "Mean", "Approved"], &row);
    plot("Time to decide", legend.collect_view().into_any(), shapes, bars, took(Some(top)), table)
}

fn plot(title: &'static str, legend: AnyView, shapes: String, bars: &[Bar], top: String, table: AnyView) -> AnyView {
    let svg = format!(
        "<svg viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{shapes}</svg>",
        bars.len().max(1)
    );
    let label = |index: usize| bars.get(index).map(|bar| bar.label.clone());
    let last = bars.len().saturating_sub(1);
    view! {
        <figure class="card plot">
            <figcaption><h2>{title}</h2><ul class="legend">{legend}</ul></figcaption>
            <div class="chart"><span class="top tiny muted" aria-hidden="true">{top}</span><div class="bars" inner_html=svg></div></div>
            <div class="axis tiny muted" aria-hidden="true">
                <span>{label(0)}</span><span>{label(last / 2)}</span><span>{label(last)}</span>
            </div>
            <details class="fold"><summary>"As a table"</summary>{table}</details>
        </figure>
    }
    .into_any()
}

/// The figures of the bars as a table, newest first; bars without reviews are left out.
fn table(bars: &[Bar], head: &[&'static str], row: &dyn Fn(&Figures) -> Vec<String>) -> AnyView {
    let head = head.iter().map(|word| view! { <th class="num">{*word}</th> }).collect_view();
    let rows = bars.iter().rev().filter(|bar| bar.figures.requests > 0).map(|bar| {
        let cells = row(&bar.figures).into_iter().map(|cell| view! { <td class="num">{cell}</td> }).collect_view();
        view! { <tr><th scope="row">{bar.label.clone()}</th>{cells}</tr> }
    });
    view! {
        <div class="wrap" tabindex="0" role="group" aria-label="Chart data">
            <table class="table"><thead><tr><th>"Time"</th>{head}</tr></thead><tbody>{rows.collect_view()}</tbody></table>
        </div>
    }
    .into_any()
}
