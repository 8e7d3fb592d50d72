//! Values that are kept but not followed, and what is done when followed ones change: of any type over one type, as in
//! `signal`.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use leptos::prelude::{Effect as LeptosEffect, ReadValue, StoredValue as LeptosStored, WriteValue};
use send_wrapper::SendWrapper;

use super::call::CallMut;
use super::signal::{gone, wrong};

type Kept = Box<dyn Any>;
type Local = SendWrapper<Kept>;
type Run = Box<dyn CallMut<Option<Kept>, Kept>>;

#[inline(never)]
fn stored_new(value: Kept) -> LeptosStored<Local> {
    LeptosStored::new(SendWrapper::new(value))
}

#[inline(never)]
fn stored_read(stored: LeptosStored<Local>) -> Option<impl Deref<Target = Local>> {
    stored.try_read_value()
}

#[inline(never)]
fn stored_update(stored: LeptosStored<Local>, change: &mut dyn for<'a> CallMut<&'a mut dyn Any, ()>) {
    if let Some(mut value) = stored.try_write_value() {
        change.call_mut(&mut ***value);
    }
}

#[inline(never)]
fn effect_new(mut run: Run) {
    LeptosEffect::new(move |before: Option<Kept>| run.call_mut(before));
}

/// A value that is not followed. It stays on the page's thread.
pub struct StoredValue<T>(LeptosStored<Local>, PhantomData<fn() -> T>);

impl<T> Copy for StoredValue<T> {}

impl<T: 'static> StoredValue<T> {
    /// A new one.
    pub fn new(value: T) -> Self {
        Self(stored_new(Box::new(value)), PhantomData)
    }

    /// Calls `see` with the value.
    pub fn with_value<R>(&self, see: impl FnOnce(&T) -> R) -> R {
        let held = stored_read(self.0).unwrap_or_else(|| gone());
        see(held.downcast_ref().unwrap_or_else(|| wrong()))
    }

    /// The value.
    pub fn get_value(&self) -> T
    where
        T: Clone,
    {
        self.with_value(T::clone)
    }

    /// The value, while the component lives that made it.
    pub fn try_get_value(&self) -> Option<T>
    where
        T: Clone,
    {
        stored_read(self.0)?.downcast_ref().cloned()
    }

    /// Sets the value.
    pub fn set_value(&self, value: T) {
        self.update_value(|held| *held = value);
    }

    /// Changes the value.
    pub fn update_value(&self, change: impl FnOnce(&mut T)) {
        self.try_update_value(change);
    }

    /// Changes the value; nothing where the component is gone that made it.
    pub fn try_update_value<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let (mut change, mut result) = (Some(change), None);
        stored_update(self.0, &mut |held: &mut dyn Any| {
            result = change.take().map(|change| change(held.downcast_mut().unwrap_or_else(|| wrong())));
        });
        result
    }
}

impl<T> Clone for StoredValue<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> fmt::Debug for StoredValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredValue")
    }
}

/// What is done again whenever a signal in it changes.
pub struct Effect;

impl Effect {
    /// A new one, for as long as the component lives; `run` is given what it returned before.
    #[expect(clippy::new_ret_no_self, reason = "as Leptos calls it")]
    pub fn new<R: 'static>(mut run: impl FnMut(Option<R>) -> R + 'static) {
        effect_new(Box::new(move |before: Option<Kept>| {
            let before = before.and_then(|before| before.downcast::<R>().ok());
            Box::new(run(before.map(|before| *before))) as Kept
        }));
    }
}
