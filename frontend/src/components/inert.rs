//! Untrusted text, links and images. Hidden characters are shown, and nothing is opened or loaded before the person has
//! seen the whole address and clicked.

use leptos::prelude::*;

use super::glyph::Glyph;
use crate::state::extent;
pub use crate::state::hidden::named;
use crate::state::invisible_characters::{TextPart, parts};
use crate::state::markdown::{Address, pieces};

/// The maximum number of hidden characters of a text that are shown as badges; the others are named in plain text.
const BADGES: usize = 100;
/// The maximum length of a text that is one element, in bytes.
const WHOLE: usize = 100_000;
/// The length of the elements of a longer text, in bytes; the browser does not lay out those that are out of sight.
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

/// Like [`inert`], for a text of any length.
pub fn in_pieces(text: &str) -> AnyView {
    if text.len() <= WHOLE {
        return inert(text).into_any();
    }
    let piece = |piece| view! { <div class="piece">{inert(piece)}</div> };
    pieces(text, PIECE).into_iter().map(piece).collect_view().into_any()
}

/// Like [`inert`], with text between backticks as code; for messages of guardrails and of the server.
pub fn inert_code(text: &str) -> Vec<AnyView> {
    let mut views = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        // A backtick without a closing one is shown as it is.
        let closed = text.matches('`').count() >= index + index % 2;
        views.push(match index % 2 {
            1 if closed => view! { <code>{inert(part)}</code> }.into_any(),
            1 => inert(&format!("`{part}")).into_any(),
            _ => inert(part).into_any(),
        });
    }
    views
}

/// A link that shows its address on a click, and only then can be followed.
#[component]
pub fn InertLink(address: Address, children: Children) -> impl IntoView {
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

/// An image that is shown on a click if it is a `data:` URL; otherwise its address. An address that is no picture is
/// shown as a whole: it is a part of the text that people approve.
#[component]
pub fn InertImage(address: Address, #[prop(into)] alt: String) -> impl IntoView {
    let shown = RwSignal::new(false);
    let source = address.text.clone();
    // A `data:` image asks no server. Another server would learn who looks at the review, and when; the page's policy
    // blocks such images, so they can only be opened in a new tab.
    let may_show = is_picture(&source);
    // The rest is the picture.
    let beginning: String = source.chars().take(80).collect();
    let size = extent::bytes(source.len());
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
                                view! { <code class="address">{inert(&beginning)}"…"</code>" "<span class="tiny muted">{size.clone()}</span> }
                                    .into_any()
                            } else {
                                view! { <AddressBox address=address.clone() /> }.into_any()
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

/// Whether an address is a picture in base64, and nothing else.
fn is_picture(address: &str) -> bool {
    let kinds =
        ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,", "data:image/webp;base64,"];
    let content = kinds.iter().find_map(|kind| address.strip_prefix(kind));
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    content.is_some_and(|content| content.bytes().all(is_digit))
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
    view! { <span class="address-box"><code class="address">{in_pieces(&address.text)}</code>{link}{barred}</span> }
}
