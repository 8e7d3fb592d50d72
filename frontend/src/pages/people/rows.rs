//! Tables of things with one action each, such as deputies and sessions.

use leptos::prelude::*;

use crate::components::inert::{inert, named};

/// Returns one row: a name, details, and a button of this class that does `act`.
pub fn row(
    what: String,
    more: String,
    class: &'static str,
    verb: &'static str,
    act: impl FnMut(web_sys::MouseEvent) + 'static,
) -> AnyView {
    let label = format!("{verb}: {}", named(&what));
    view! {
        <tr>
            <td class="person-name"><b>{inert(&what)}</b></td>
            <td class="soft">{inert(&more)}</td>
            <td class="num"><button class=class aria-label=label on:click=act>{verb}</button></td>
        </tr>
    }
    .into_any()
}

/// Returns the rows as a table, or the text `none` if there are none.
pub fn table(rows: Vec<AnyView>, none: &'static str) -> AnyView {
    if rows.is_empty() {
        return view! { <p class="muted small">{none}</p> }.into_any();
    }
    filled_table(rows)
}

/// Returns rows, of which there is at least one, as a table.
pub fn filled_table(rows: Vec<AnyView>) -> AnyView {
    view! { <div class="card"><table class="table people-table"><tbody>{rows}</tbody></table></div> }.into_any()
}
