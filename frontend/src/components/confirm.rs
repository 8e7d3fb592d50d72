//! The question before something that cannot be undone, or that lets others in.

use leptos::prelude::*;

use super::button::Button;
use super::dialog::Dialog;

/// A dialog that asks whether to do something, open while `open` is true. Its children say what will happen. The focus
/// begins on the button that does nothing.
#[component]
pub fn Confirm(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// The label of the button that does nothing.
    keep: &'static str,
    /// The label of the button that does it.
    act: &'static str,
    /// Whether it is being done. The dialog stays open until then.
    #[prop(into)]
    busy: Signal<bool>,
    /// Does it, and closes the dialog.
    confirmed: Callback<()>,
    /// What will happen.
    children: ChildrenFn,
) -> impl IntoView {
    let says = StoredValue::new(children);
    view! {
        <Dialog open stay=busy title>
            <div class="in">
                {says.with_value(|says| says())}
                <div class="actions">
                    <Button class="b" off=busy press=move |()| open.set(false)>{keep}</Button>
                    <Button class="b stop" off=busy press=confirmed>{act}</Button>
                </div>
            </div>
        </Dialog>
    }
}
