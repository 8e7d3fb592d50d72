//! The help overlay, which `?` and the menu open: all keyboard shortcuts of the console.

use leptos::prelude::*;

use super::commands::Commands;
use super::dialog::Dialog;
use crate::state::palette::Section;
use crate::state::shortcuts::{self, Shortcut};

/// The help overlay, open while `open` is true, which `?` sets.
#[component]
pub fn Help(open: RwSignal<bool>) -> impl IntoView {
    let says = || Some("Keyboard shortcuts".to_owned());
    expect_context::<Commands>().on_key(Section::Everywhere, shortcuts::HELP, says, move || open.set(true));
    let line = |shortcut: &Shortcut| {
        let caps = shortcut.keys.split_whitespace().map(|cap| view! { <kbd>{cap}</kbd>" " }).collect_view();
        view! { <dt>{caps}</dt><dd>{shortcut.does}</dd> }
    };
    let section = move |(title, all): &(&'static str, &'static [Shortcut])| {
        view! { <section><h3 class="sub">{*title}</h3><dl>{all.iter().map(line).collect_view()}</dl></section> }
    };
    view! {
        <Dialog open=open title="Keyboard shortcuts">
            <div class="in keys">{shortcuts::ALL.iter().map(section).collect_view()}</div>
        </Dialog>
    }
}
