//! Short notices in a corner, which leave by themselves: `notify(…)`, `Notices::expect()`.

use leptos::prelude::*;

use super::glyph::Glyph;

/// How a notice is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Something worked.
    Good,
    /// Something to know.
    Plain,
    /// Something did not work.
    Bad,
}

#[derive(Debug, Clone, PartialEq)]
struct Notice {
    id: u64,
    tone: Tone,
    text: String,
}

/// The notices that are shown. Cheap to copy into closures.
#[derive(Debug, Clone, Copy)]
pub struct Notifier {
    shown: RwSignal<Vec<Notice>>,
    next: StoredValue<u64>,
}

/// Makes `Notifier::expect()` work for everything below.
pub fn provide_notices() {
    provide_context(Notifier { shown: RwSignal::new(Vec::new()), next: StoredValue::new(0) });
}

impl Notifier {
    /// The notices of the page.
    pub fn expect() -> Self {
        expect_context()
    }

    /// Something worked.
    pub fn good(self, text: impl Into<String>) {
        self.show(Tone::Good, text.into());
    }

    /// Something to know.
    pub fn say(self, text: impl Into<String>) {
        self.show(Tone::Plain, text.into());
    }

    /// Something did not work.
    pub fn bad(self, text: impl Into<String>) {
        self.show(Tone::Bad, text.into());
    }

    fn show(self, tone: Tone, text: String) {
        let id = self.next.get_value();
        self.next.set_value(id + 1);
        self.shown.update(|shown| {
            shown.retain(|notice| notice.text != text);
            shown.push(Notice { id, tone, text });
        });
        let stay = if tone == Tone::Bad { 12_000 } else { 5_000 };
        leptos::task::spawn_local(async move {
            gloo_timers::future::TimeoutFuture::new(stay).await;
            self.close(id);
        });
    }

    fn close(self, id: u64) {
        self.shown.update(|shown| shown.retain(|notice| notice.id != id));
    }
}

/// Where the notices are shown; read out by screen readers as they come.
#[component]
pub fn Notices() -> impl IntoView {
    let notifier = Notifier::expect();
    view! {
        <div class="notices" role="status" aria-live="polite">
            <For each=move || notifier.shown.get() key=|notice| notice.id let:notice>
                <div class="notice">
                    {match notice.tone {
                        Tone::Good => view! { <span class="go"><Glyph icon=icondata::LuCircleCheck /></span> }.into_any(),
                        Tone::Plain => view! { <span class="muted"><Glyph icon=icondata::LuInfo /></span> }.into_any(),
                        Tone::Bad => view! { <span class="stop"><Glyph icon=icondata::LuTriangleAlert /></span> }.into_any(),
                    }}
                    <span class="grow">{notice.text}</span>
                    <button class="b ghost sm icon" aria-label="Close" on:click=move |_| notifier.close(notice.id)>
                        <Glyph icon=icondata::LuX />
                    </button>
                </div>
            </For>
        </div>
    }
}
