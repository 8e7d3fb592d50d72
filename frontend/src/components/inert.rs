//! Untrusted text, links and pictures: hidden characters are shown, and nothing is opened or loaded before a click and
//! a look at its whole address.

use leptos::prelude::*;

use super::glyph::Glyph;
use crate::state::invisible_characters::{TextPart, parts};
use crate::state::markdown::{Address, pieces};

/// So many hidden characters of a text are badges; the others are named in the text, which takes no elements.
const BADGES: usize = 100;
/// Up to this length a text is one element, in bytes.
const WHOLE: usize = 100_000;
/// How much of a longer text is one element, in bytes: of those that are out of sight the browser lays out none.
const PIECE: usize = 10_000;

/// Text with its hidden characters shown as badges.
pub fn inert(text: &str) -> Vec<AnyView> {
    let mut views = Vec::new();
    let mut rest = String::new();
    let mut badges = 0;
    for part in parts(text) {
        match part {
            TextPart::Plain(text) if badges < BADGES => views.push(text.to_owned().into_any()),
            TextPart::Hidden { name, .. } if badges < BADGES => {
                badges += 1;
                let title = format!("Hidden character: {name}");
                views.push(view! { <span class="hidden-char" title=title>{name}</span> }.into_any());
            }
            TextPart::Plain(text) => rest.push_str(text),
            TextPart::Hidden { name, .. } => rest.extend(["[", &name, "]"]),
        }
    }
    views.push(rest.into_any());
    views
}

/// The same for a text of any length.
pub fn in_pieces(text: &str) -> AnyView {
    if text.len() <= WHOLE {
        return inert(text).into_any();
    }
    let piece = |piece| view! { <div class="piece">{inert(piece)}</div> };
    pieces(text, PIECE).into_iter().map(piece).collect_view().into_any()
}

/// The same where no elements can be: in a title, an option of a menu, the name of a tab.
pub fn named(text: &str) -> String {
    let part = |part: TextPart<'_>| match part {
        TextPart::Plain(text) => text.to_owned(),
        TextPart::Hidden { name, .. } => format!("[{name}]"),
    };
    parts(text).into_iter().map(part).collect()
}

/// The same, with what stands between backticks as code: what guardrails and the server say of something.
pub fn inert_code(text: &str) -> Vec<AnyView> {
    let mut views = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        // A backtick that nothing closes is one.
        let closed = text.matches('`').count() >= index + index % 2;
        views.push(match index % 2 {
            1 if closed => view! { <code>{inert(part)}</code> }.into_any(),
            1 => inert(&format!("`{part}")).into_any(),
            _ => inert(part).into_any(),
        });
    }
    views
}

/// A link that shows its address when it is clicked, and only then can be followed.
#[component]
pub fn InertLink(
    /// Where it leads.
    address: Address,
    /// What was written for it.
    children: Children,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let title = format!("Shows where this link leads: {}", address.text);
    view! {
        <button
            type="button"
            class="inert-link"
            title=title
            aria-expanded=move || open.get().to_string()
            on:click=move |_| open.update(|open| *open = !*open)
        >
            {children()}
        </button>
        <Show when=move || open.get()>
            <AddressBox address=address.clone() />
        </Show>
    }
}

/// A picture that is shown when it is clicked, where it is inside the text; else its address.
#[component]
pub fn InertImage(
    /// Where it is.
    address: Address,
    /// What stands for it.
    #[prop(into)]
    alt: String,
) -> impl IntoView {
    let shown = RwSignal::new(false);
    let source = address.text.clone();
    // A picture inside the page asks no server. One of another server would tell it who looks at the review, and when:
    // the page's policy loads none, so it can only be opened in a tab of its own.
    let inline = ["data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;"];
    let may_show = inline.iter().any(|kind| source.starts_with(kind));
    let short = Address { text: source.chars().take(160).collect(), ..address.clone() };
    let text = alt.clone();
    view! {
        <span class="inert-image">
            <Show
                when=move || shown.get()
                fallback=move || {
                    view! {
                        <Glyph icon=icondata::LuImage />
                        <span class="grow">
                            <b>{inert(&text)}</b>
                            {if may_show {
                                view! { <code class="address">{inert(&short.text)}</code> }.into_any()
                            } else {
                                view! { <AddressBox address=if address.may_open { address.clone() } else { short.clone() } /> }.into_any()
                            }}
                        </span>
                        {may_show
                            .then(|| {
                                view! {
                                    <button type="button" class="b sm" on:click=move |_| shown.set(true)>"Show picture"</button>
                                }
                            })}
                    }
                }
            >
                <img src=source.clone() alt=alt.clone() referrerpolicy="no-referrer" decoding="async" />
            </Show>
        </span>
    }
}

#[component]
fn AddressBox(address: Address) -> impl IntoView {
    let link = address.may_open.then(|| {
        view! {
            <a class="b sm" href=address.text.clone() target="_blank" rel="noopener noreferrer nofollow">
                "Open "<Glyph icon=icondata::LuExternalLink />
            </a>
        }
    });
    let barred = (!address.may_open).then(|| view! { <span class="tiny muted">"cannot be opened from here"</span> });
    view! { <span class="address-box"><code class="address">{inert(&address.text)}</code>{link}{barred}</span> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hidden_character_is_left_where_only_text_can_be() {
        assert_eq!(named("Approve\u{202e}tcejeR"), "Approve[RLO]tcejeR");
        assert_eq!(named("Approve"), "Approve");
    }
}
