//! The help overlay, which `?` and the menu open: all keyboard shortcuts of the console.

use leptos::prelude::*;

use super::commands::Commands;
use super::dialog::Dialog;
use crate::state::palette::Section;
use crate::state::shortcuts;

/// The help overlay, open while `open` is true, which `?` sets.
#[component]
pub fn Help(open: RwSignal<bool>) -> impl IntoView {
    let says = || Some("Keyboard shortcuts".to_owned());
    Commands::expect().on_key(Section::Everywhere, shortcuts::HELP, says, move || open.set(true));
    view! {
        <Dialog open=open title="Keyboard shortcuts">
            <div class="in keys">
                {shortcuts::ALL
                    .iter()
                    .map(|(title, all)| {
                        view! {
                            <section>
                                <h3 class="sub">{*title}</h3>
                                <dl>
                                    {all
                                        .iter()
                                        .map(|shortcut| {
                                            let caps = shortcut
                                                .keys
                                                .split(' ')
                                                .filter(|cap| !cap.is_empty())
                                                .map(|cap| view! { <kbd>{cap}</kbd>" " })
                                                .collect_view();
                                            view! { <dt>{caps}</dt><dd>{shortcut.does}</dd> }
                                        })
                                        .collect_view()}
                                </dl>
                            </section>
                        }
                    })
                    .collect_view()}
            </div>
        </Dialog>
    }
}
