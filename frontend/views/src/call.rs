//! Closures behind one method. The vtable of a `dyn Fn` has three, each with a copy of what the closure does.

use std::sync::Arc;

use leptos::children::{ChildrenOptContainer, ToChildren};
use leptos::prelude::{AnyView, IntoAny, RenderHtml};

/// What is called again and again.
pub trait Call<A, R> {
    /// Calls it.
    fn call(&self, argument: A) -> R;
}

impl<A, R, F: Fn(A) -> R> Call<A, R> for F {
    fn call(&self, argument: A) -> R {
        self(argument)
    }
}

/// What is called again and again, and changes.
pub trait CallMut<A, R> {
    /// Calls it.
    fn call_mut(&mut self, argument: A) -> R;
}

impl<A, R, F: FnMut(A) -> R> CallMut<A, R> for F {
    fn call_mut(&mut self, argument: A) -> R {
        self(argument)
    }
}

type Make = Arc<dyn Call<(), AnyView> + Send + Sync>;

/// The children of a component that shows them more than once.
#[derive(Clone)]
pub struct ChildrenFn(Make);

impl ChildrenFn {
    /// Makes them.
    pub fn view(&self) -> AnyView {
        self.0.call(())
    }
}

impl<C: RenderHtml + Send + 'static, F: Fn() -> C + Send + Sync + 'static> ToChildren<F> for ChildrenFn {
    fn to_children(children: F) -> Self {
        Self(Arc::new(move |()| children().into_any()))
    }
}

impl<T: IntoAny + Clone + Send + Sync + 'static> ToChildren<ChildrenOptContainer<T>> for ChildrenFn {
    fn to_children(children: ChildrenOptContainer<T>) -> Self {
        Self(Arc::new(move |()| children.0.clone().into_any()))
    }
}

/// A view that a component makes when it needs it.
#[derive(Clone)]
pub struct ViewFn(Make);

impl ViewFn {
    /// Makes it.
    pub fn run(&self) -> AnyView {
        self.0.call(())
    }
}

impl Default for ViewFn {
    fn default() -> Self {
        Self::from(|| ())
    }
}

impl<C: RenderHtml + Send + 'static, F: Fn() -> C + Send + Sync + 'static> From<F> for ViewFn {
    fn from(view: F) -> Self {
        Self(Arc::new(move |()| view().into_any()))
    }
}
