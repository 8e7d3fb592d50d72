//! Signals of any type over signals of one type.
//!
//! Leptos compiles its signals, memos and stores anew for each type of value. Here a value is kept behind [`Any`], so
//! that what Leptos does is compiled once, and only the way in and out knows the type. The names and methods are
//! Leptos's; those that the console does not use are left out.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::call::{Call, CallMut};
use leptos::prelude::{
    ArcRwSignal as LeptosArc, Memo as LeptosMemo, Notify, Read, ReadUntracked, RwSignal as LeptosRw, Set,
    Signal as LeptosSignal, Track, Write,
};

/// A value of any type, and how it is compared with others of its type.
struct Held {
    value: Box<dyn Any + Send + Sync>,
    differs: fn(&Held, &Held) -> bool,
}

impl Held {
    fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self { value: Box::new(value), differs: |_, _| true }
    }

    fn comparable<T: PartialEq + Send + Sync + 'static>(value: T) -> Self {
        Self { value: Box::new(value), differs: |one, other| one.get::<T>() != other.get::<T>() }
    }

    fn get<T: 'static>(&self) -> &T {
        self.value.downcast_ref().unwrap_or_else(|| wrong())
    }

    fn get_mut<T: 'static>(&mut self) -> &mut T {
        self.value.downcast_mut().unwrap_or_else(|| wrong())
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong() -> ! {
    unreachable!("a signal holds values of its own type only")
}

// What Leptos does, once.

#[inline(never)]
fn rw_read(signal: LeptosRw<Held>) -> impl Deref<Target = Held> {
    signal.read()
}

#[inline(never)]
fn rw_peek(signal: LeptosRw<Held>) -> Option<impl Deref<Target = Held>> {
    signal.try_read_untracked()
}

#[inline(never)]
fn rw_set(signal: LeptosRw<Held>, value: Held) {
    signal.set(value);
}

#[inline(never)]
fn rw_update(signal: LeptosRw<Held>, change: &mut dyn for<'a> CallMut<&'a mut Held, ()>) {
    if let Some(mut value) = signal.try_write() {
        change.call_mut(&mut value);
    }
}

#[inline(never)]
fn arc_read(signal: &LeptosArc<Held>) -> impl Deref<Target = Held> + use<> {
    signal.read()
}

#[inline(never)]
fn arc_peek(signal: &LeptosArc<Held>) -> Option<impl Deref<Target = Held> + use<>> {
    signal.try_read_untracked()
}

#[inline(never)]
fn memo_new(compute: Box<dyn for<'a> Call<Option<&'a Held>, Held> + Send + Sync>) -> LeptosMemo<Held> {
    LeptosMemo::new_with_compare(
        move |before| compute.call(before),
        |before, now| match (before, now) {
            (Some(before), Some(now)) => (now.differs)(before, now),
            _ => true,
        },
    )
}

#[inline(never)]
fn memo_read(memo: LeptosMemo<Held>) -> impl Deref<Target = Held> {
    memo.read()
}

#[inline(never)]
fn memo_peek(memo: LeptosMemo<Held>) -> Option<impl Deref<Target = Held>> {
    memo.try_read_untracked()
}

#[inline(never)]
fn signal_derive(compute: Box<dyn Call<(), Held> + Send + Sync>) -> LeptosSignal<Held> {
    LeptosSignal::derive(move || compute.call(()))
}

#[inline(never)]
fn signal_read(signal: LeptosSignal<Held>) -> impl Deref<Target = Held> {
    signal.read()
}

#[inline(never)]
fn signal_peek(signal: LeptosSignal<Held>) -> Option<impl Deref<Target = Held>> {
    signal.try_read_untracked()
}

#[cold]
#[inline(never)]
pub(crate) fn gone() -> ! {
    panic!("a signal was read after the component that made it had gone")
}

macro_rules! reading {
    ($name:ident, $read:ident, $peek:ident, $inner:ident => $handle:expr) => {
        impl<T: 'static> $name<T> {
            /// Calls `see` with the value; what is computed of it follows the signal.
            pub fn with<R>(&self, see: impl FnOnce(&T) -> R) -> R {
                let $inner = &self.0;
                see($read($handle).get())
            }

            /// Calls `see` with the value.
            pub fn with_untracked<R>(&self, see: impl FnOnce(&T) -> R) -> R {
                let $inner = &self.0;
                see($peek($handle).unwrap_or_else(|| gone()).get())
            }

            /// The value; what is computed of it follows the signal.
            pub fn get(&self) -> T
            where
                T: Clone,
            {
                self.with(T::clone)
            }

            /// The value.
            pub fn get_untracked(&self) -> T
            where
                T: Clone,
            {
                self.with_untracked(T::clone)
            }

            /// The value, while the component lives that made the signal.
            pub fn try_get_untracked(&self) -> Option<T>
            where
                T: Clone,
            {
                let $inner = &self.0;
                $peek($handle).map(|held| held.get::<T>().clone())
            }

            /// Follows the signal without looking at it.
            pub fn track(&self) {
                self.0.track();
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<T> Eq for $name<T> {}
    };
}

/// A value that is followed.
pub struct RwSignal<T>(LeptosRw<Held>, PhantomData<fn() -> T>);
/// A value that is followed, and lives as long as somebody has it.
pub struct ArcRwSignal<T>(LeptosArc<Held>, PhantomData<fn() -> T>);
/// A value that is computed of others, and followed where it differs from before.
pub struct Memo<T>(LeptosMemo<Held>, PhantomData<fn() -> T>);
/// Any of them.
pub struct Signal<T>(LeptosSignal<Held>, PhantomData<fn() -> T>);

reading!(RwSignal, rw_read, rw_peek, inner => *inner);
reading!(ArcRwSignal, arc_read, arc_peek, inner => inner);
reading!(Memo, memo_read, memo_peek, inner => *inner);
reading!(Signal, signal_read, signal_peek, inner => *inner);

macro_rules! copies {
    ($($name:ident)*) => {
        $(impl<T> Copy for $name<T> {}

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        })*
    };
}
copies! { RwSignal Memo Signal }

impl<T> Clone for ArcRwSignal<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T: Send + Sync + 'static> RwSignal<T> {
    /// A new one.
    pub fn new(value: T) -> Self {
        Self(LeptosRw::new(Held::new(value)), PhantomData)
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        rw_set(self.0, Held::new(value));
    }

    /// Changes the value.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        self.try_update(change);
    }

    /// Changes the value; nothing where the component is gone that made the signal.
    pub fn try_update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let (mut change, mut result) = (Some(change), None);
        rw_update(self.0, &mut |held: &mut Held| result = change.take().map(|change| change(held.get_mut())));
        result
    }

    /// Says that the value has changed.
    pub fn notify(&self) {
        self.0.notify();
    }
}

impl<T: Send + Sync + 'static> ArcRwSignal<T> {
    /// A new one.
    pub fn new(value: T) -> Self {
        Self(LeptosArc::new(Held::new(value)), PhantomData)
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        self.0.set(Held::new(value));
    }

    /// Changes the value.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        if let Some(mut held) = self.0.try_write() {
            change(held.get_mut());
        }
    }
}

impl<T: Send + Sync + 'static> Memo<T> {
    /// A new one; `compute` is given what it computed before.
    pub fn new(compute: impl Fn(Option<&T>) -> T + Send + Sync + 'static) -> Self
    where
        T: PartialEq,
    {
        let compute = move |before: Option<&Held>| Held::comparable(compute(before.map(Held::get)));
        Self(memo_new(Box::new(compute)), PhantomData)
    }
}

impl<T: Send + Sync + 'static> Signal<T> {
    /// Computed each time that it is read.
    pub fn derive(compute: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self(signal_derive(Box::new(move |()| Held::new(compute()))), PhantomData)
    }

    /// Always the same.
    pub fn stored(value: T) -> Self {
        Self(LeptosSignal::stored(Held::new(value)), PhantomData)
    }
}

impl<T: Default + Send + Sync + 'static> Default for Signal<T> {
    fn default() -> Self {
        Self::stored(T::default())
    }
}

impl<T: 'static> From<ArcRwSignal<T>> for RwSignal<T> {
    fn from(signal: ArcRwSignal<T>) -> Self {
        Self(signal.0.into(), PhantomData)
    }
}

impl<T: 'static> From<RwSignal<T>> for Signal<T> {
    fn from(signal: RwSignal<T>) -> Self {
        Self(signal.0.into(), PhantomData)
    }
}

impl<T: 'static> From<Memo<T>> for Signal<T> {
    fn from(memo: Memo<T>) -> Self {
        Self(memo.0.into(), PhantomData)
    }
}

impl<T: Send + Sync + 'static> From<T> for Signal<T> {
    fn from(value: T) -> Self {
        Self::stored(value)
    }
}

impl From<&str> for Signal<String> {
    fn from(value: &str) -> Self {
        Self::stored(value.to_owned())
    }
}
