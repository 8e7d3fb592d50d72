//! Listeners of events that the browser may also send while it takes an element out of the page.

use leptos::prelude::*;

/// Wraps a listener so that it does nothing once its component is gone.
///
/// A browser that removes the focused element may first report that it loses the focus and that its value has changed
/// (`blur`, `focusout`, `change`), and it reports the opening of an element only later (`toggle`). By then the signals
/// of the component may be disposed, and reading one would end the program. So each listener of these events is
/// wrapped; `cargo xtask tidy` reports others.
pub fn while_shown<E>(mut act: impl FnMut(E) + 'static) -> impl FnMut(E) + 'static {
    let shown = StoredValue::new(());
    move |event| {
        if !shown.is_disposed() {
            act(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_listener_that_outlives_its_component_does_nothing() {
        let page = Owner::new();
        let heard = Rc::new(Cell::new(0));
        let mut listener = page.with(|| {
            let (text, heard) = (RwSignal::new(1), Rc::clone(&heard));
            while_shown(move |by: i32| heard.set(heard.get() + by * text.get_untracked()))
        });
        listener(1);
        page.cleanup();
        listener(1);
        assert_eq!(heard.get(), 1);
    }
}
