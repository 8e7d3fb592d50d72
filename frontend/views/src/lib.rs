//! Leptos, with one type for every element instead of one type for each.
//!
//! The console depends on this crate under the name `leptos`, and `view!` writes paths that begin with `::leptos`: so
//! its elements, attributes, and control flow are the ones below, and everything else is Leptos's own. Leptos makes a
//! type of its own of every element, attribute and closure, and the compiler the code to build, rebuild, mount and drop
//! each of them: that was most of the bundle. Here that code is there once.
//!
//! Imports Leptos only.

mod call;
mod control;
mod element;
mod signal;
mod stored;
mod tags;
mod value;

pub use leptos::*;

pub use element::El;
pub use value::{Reactive, Value};

/// What `view!` wraps closures in.
#[doc(hidden)]
pub fn __as_shared_reactive_fn<T, F: FnMut() -> T + Send + 'static>(closure: F) -> Reactive<F> {
    Reactive(closure)
}

/// Leptos's prelude, with the traits and components of this crate in place of Leptos's.
pub mod prelude {
    pub use leptos::prelude::*;

    pub use crate::call::{ChildrenFn, ViewFn};
    pub use crate::control::{For, ForProps, Show, ShowProps, dynamic};
    pub use crate::signal::{ArcRwSignal, Memo, RwSignal, Signal};
    pub use crate::stored::{Effect, StoredValue};
    pub use crate::value::{CollectView, IntoAttributeValue, IntoRender, Marked, View};
}

/// Leptos's `tachys`, with the elements of this crate in place of its own.
pub mod tachys {
    pub use leptos::tachys::*;

    /// HTML.
    pub mod html {
        pub use leptos::tachys::html::*;

        /// The elements of HTML.
        pub mod element {
            pub use crate::tags::html::*;
        }
    }

    /// SVG.
    pub mod svg {
        pub use leptos::tachys::svg::InertElement;

        pub use crate::tags::svg::*;
    }
}
