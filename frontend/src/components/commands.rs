//! The actions that the page offers now, each with its key. Whoever can do something offers it here while it is on the
//! page; the command palette lists what is offered, and does it as the key would.

use std::rc::Rc;

use leptos::prelude::*;

use super::shortcuts::{is_free, key_of};
use crate::state::palette::Section;
use crate::state::shortcuts::Shortcut;

/// An action that is offered.
#[derive(Clone)]
pub struct Command {
    /// What it does, in words.
    pub says: String,
    /// What follows from it; empty if that goes without saying.
    pub then: String,
    /// Its key; `None` if it has none.
    pub key: Option<String>,
    act: Rc<dyn Fn()>,
}

impl Command {
    /// An action without a key.
    pub fn new(says: impl Into<String>, act: impl Fn() + 'static) -> Self {
        Self { says: says.into(), then: String::new(), key: None, act: Rc::new(act) }
    }

    /// The same with its key.
    pub fn key(self, key: Option<String>) -> Self {
        Self { key, ..self }
    }

    /// The same with what follows from it.
    pub fn then(self, then: impl Into<String>) -> Self {
        Self { then: then.into(), ..self }
    }
}

/// An action as it was offered, for [`Commands::perform`].
#[derive(Clone)]
pub struct Offered {
    pub section: Section,
    pub command: Command,
    source: u64,
}

type List = Rc<dyn Fn() -> Vec<Command>>;

#[derive(Default)]
struct Sources {
    all: Vec<(u64, Section, List)>,
    next: u64,
}

/// The actions that are offered, and whether the palette is open, which lists them. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Commands {
    pub open: RwSignal<bool>,
    sources: StoredValue<Sources, LocalStorage>,
}

/// Makes the actions available to all components below.
pub fn provide_commands() {
    provide_context(Commands { open: RwSignal::new(false), sources: StoredValue::new_local(Sources::default()) });
}

impl Commands {
    /// Offers the actions that `list` returns, while the calling component exists.
    pub fn offer(self, section: Section, list: impl Fn() -> Vec<Command> + 'static) {
        let Some(id) = self.sources.try_update_value(|sources| {
            sources.next += 1;
            sources.all.push((sources.next, section, Rc::new(list)));
            sources.next
        }) else {
            return;
        };
        on_cleanup(move || {
            // It fails only if the page is gone too.
            let _ = self.sources.try_update_value(|sources| sources.all.retain(|(other, ..)| *other != id));
        });
    }

    /// Offers an action that a single key does too, while the calling component exists. `says` returns `None` while it
    /// cannot be done.
    pub fn on_key(
        self,
        section: Section,
        shortcut: Shortcut,
        says: impl Fn() -> Option<String> + 'static,
        act: impl Fn() + 'static,
    ) {
        let (says, act) = (Rc::new(says), Rc::new(act));
        let listener = {
            let (says, act) = (Rc::clone(&says), Rc::clone(&act));
            window_event_listener(leptos::ev::keydown, move |event| {
                // A key that is held down must not act again and again, such as undo every decision.
                let is_pressed = key_of(&event) == shortcut.keys && !event.repeat();
                if is_pressed && is_free(&event) && untrack(|| says()).is_some() {
                    event.prevent_default();
                    act();
                }
            })
        };
        on_cleanup(move || listener.remove());
        self.offer(section, move || {
            let command = |says| {
                let act = Rc::clone(&act);
                Command::new(says, move || act()).key(Some(shortcut.keys.to_owned()))
            };
            says().map(command).into_iter().collect()
        });
    }

    /// Everything that is offered at this moment, what was offered last first.
    pub fn now(self) -> Vec<Offered> {
        let sources = self.sources.with_value(|sources| sources.all.clone());
        let all = sources.into_iter().rev().flat_map(|(source, section, list)| {
            untrack(|| list()).into_iter().map(move |command| Offered { section, command, source })
        });
        all.collect()
    }

    /// Does what was offered, if it still is: meanwhile, the review may be over, or another one open. Returns whether it
    /// was.
    pub fn perform(self, offered: &Offered) -> bool {
        let is_it = |now: &Offered| {
            let words = |one: &Offered| (one.source, one.command.says.clone(), one.command.key.clone());
            words(now) == words(offered)
        };
        let still = self.now().into_iter().find(is_it);
        if let Some(still) = &still {
            (still.command.act)();
        }
        still.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_no_longer_offered_is_not_done() {
        let page = Owner::new();
        page.set();
        provide_commands();
        let commands = expect_context::<Commands>();
        let (pending, done) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
        let review = page.child();
        review.with(|| {
            let (pending, done) = (Rc::clone(&pending), Rc::clone(&done));
            commands.offer(Section::Review, move || {
                let done = Rc::clone(&done);
                pending.get().then(|| Command::new("Approve", move || done.set(done.get() + 1))).into_iter().collect()
            });
        });
        let offered = commands.now();
        assert_eq!(offered.len(), 1);
        assert!(commands.perform(&offered[0]), "it is done");
        pending.set(false);
        assert!(!commands.perform(&offered[0]), "it was decided elsewhere meanwhile");
        pending.set(true);
        review.cleanup();
        let next = page.child();
        next.with(|| commands.offer(Section::Review, || vec![Command::new("Approve", || {})]));
        assert!(!commands.perform(&offered[0]), "that is another review");
        assert_eq!(done.get(), 1);
    }
}
