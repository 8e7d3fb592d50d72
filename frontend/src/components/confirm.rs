//! The question before something that cannot be undone, or that lets others in.

use leptos::prelude::*;
use shared::error::Problem;

use super::button::Button;
use super::dialog::Dialog;
use super::notice::Notifier;
use crate::client::to_show;

/// A dialog that asks whether to do something, open while `open` is true. Its children say what will happen. The focus
/// begins on the button that does nothing. It stays open while it is being done, and while the person must first confirm
/// that it is they: then the same button does it.
#[component]
pub fn Confirm<D, F>(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// The label of the button that does nothing.
    keep: &'static str,
    /// The label of the button that does it.
    act: &'static str,
    /// What a refusal begins with, such as "Not removed."
    failed: &'static str,
    does: D,
    /// What will happen.
    children: ChildrenFn,
) -> impl IntoView
where
    D: Fn() -> F + 'static,
    F: Future<Output = Result<(), Problem>> + 'static,
{
    let notices = expect_context::<Notifier>();
    let doing = Action::new_local(move |(): &()| {
        let done = does();
        async move {
            if let Err(refused) = done.await {
                let Some(problem) = to_show(refused) else { return };
                notices.bad(format!("{failed} {problem}"));
            }
            // The page may have been left meanwhile.
            let _ = open.try_set(false);
        }
    });
    let busy = doing.pending();
    let says = StoredValue::new(children);
    view! {
        <Dialog open stay=busy title>
            <div class="in">
                {says.with_value(|says| says())}
                <div class="actions">
                    <Button class="b" off=busy press=move |()| open.set(false)>{keep}</Button>
                    <Button class="b stop" off=busy press=move |()| { doing.dispatch_local(()); }>{act}</Button>
                </div>
            </div>
        </Dialog>
    }
}
