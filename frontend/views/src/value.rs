//! What an attribute can be set to, and what Rust values become it.

use std::borrow::Cow;

use leptos::prelude::{AnyView, IntoAny, Render, RenderHtml};

use super::call::CallMut;
use super::control::boxed;
use super::signal::{Memo, RwSignal, Signal};

/// The value of an attribute, class, style or property.
pub enum Value {
    /// Not there.
    Nothing,
    /// There or not.
    Flag(bool),
    /// A literal.
    Literal(&'static str),
    /// A text.
    Text(String),
    /// Computed, and again whenever a signal in it changes.
    Computed(Box<dyn CallMut<(), Value> + Send>),
}

impl Value {
    /// The text, where there is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Text(text) => Some(text),
            Self::Flag(true) => Some(""),
            Self::Flag(false) | Self::Nothing | Self::Computed(_) => None,
        }
    }
}

/// A closure that `view!` found in a view.
pub struct Reactive<F>(pub F);

/// What can be the value of an attribute.
pub trait IntoValue {
    /// Makes the value.
    fn into_value(self) -> Value;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl IntoValue for bool {
    fn into_value(self) -> Value {
        Value::Flag(self)
    }
}

impl IntoValue for &'static str {
    fn into_value(self) -> Value {
        Value::Literal(self)
    }
}

impl IntoValue for String {
    fn into_value(self) -> Value {
        Value::Text(self)
    }
}

impl IntoValue for Cow<'static, str> {
    fn into_value(self) -> Value {
        match self {
            Cow::Borrowed(text) => Value::Literal(text),
            Cow::Owned(text) => Value::Text(text),
        }
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Nothing, T::into_value)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl IntoValue for $number {
            fn into_value(self) -> Value {
                Value::Text(self.to_string())
            }
        })*
    };
}
numbers! { i32 u32 u64 usize }

macro_rules! signals {
    ($($signal:ident)*) => {
        $(impl<T: IntoValue + Clone + Send + Sync + 'static> IntoValue for $signal<T> {
            fn into_value(self) -> Value {
                Value::Computed(Box::new(move |()| self.get().into_value()))
            }
        })*
    };
}
signals! { Memo RwSignal Signal }

impl<T: IntoValue, F: FnMut() -> T + Send + 'static> IntoValue for F {
    fn into_value(mut self) -> Value {
        Value::Computed(Box::new(move |()| self().into_value()))
    }
}

impl<T: IntoValue, F: FnMut() -> T + Send + 'static> IntoValue for Reactive<F> {
    fn into_value(self) -> Value {
        self.0.into_value()
    }
}

/// What `view!` calls on the values of attributes.
pub trait IntoAttributeValue {
    /// Makes the value.
    fn into_attribute_value(self) -> Value;
}

impl<T: IntoValue> IntoAttributeValue for T {
    fn into_attribute_value(self) -> Value {
        self.into_value()
    }
}

/// What `class` and `style` take: the whole of it, or one class or property with its value.
pub trait Part {
    /// The name of the part, and the value.
    fn part(self) -> (Option<&'static str>, Value);
}

impl<T: IntoValue> Part for T {
    fn part(self) -> (Option<&'static str>, Value) {
        (None, self.into_value())
    }
}

impl<T: IntoValue> Part for (&'static str, T) {
    fn part(self) -> (Option<&'static str>, Value) {
        (Some(self.0), self.1.into_value())
    }
}

/// What `view!` calls on the blocks of a view.
pub trait IntoRender {
    /// What is drawn.
    type Output;
    /// Makes it.
    fn into_render(self) -> Self::Output;
}

impl<T: Render> IntoRender for T {
    type Output = T;
    fn into_render(self) -> T {
        self
    }
}

impl<T: RenderHtml + Send, F: FnMut() -> T + Send + 'static> IntoRender for Reactive<F> {
    type Output = AnyView;
    fn into_render(mut self) -> AnyView {
        boxed(Box::new(move |()| (self.0)().into_any()))
    }
}

/// What `view!` wraps whole views in: nothing.
pub struct View;

impl View {
    /// The view itself.
    #[expect(clippy::new_ret_no_self, reason = "as `view!` calls it")]
    pub fn new<T>(view: T) -> T {
        view
    }
}

/// What `view!` says of whole views while one develops.
pub trait Marked: Sized {
    /// The view itself.
    #[must_use]
    fn with_view_marker(self, _: &'static str) -> Self {
        self
    }
}

impl<T: RenderHtml> Marked for T {}

/// Many views as one.
pub trait CollectView {
    /// Makes them one.
    fn collect_view(self) -> AnyView;
}

impl<V: RenderHtml + Send, I: IntoIterator<Item = V>> CollectView for I {
    fn collect_view(self) -> AnyView {
        self.into_iter().map(V::into_any).collect::<Vec<AnyView>>().into_any()
    }
}
