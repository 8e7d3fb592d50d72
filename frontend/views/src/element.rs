//! The one type of elements: what it is made of, how it is built, and how it becomes another.

use std::borrow::Cow;

use leptos::prelude::{AddAnyAttr, AnyView, IntoAny, Mountable, NodeRef, Owner, Render, RenderEffect, RenderHtml};
use leptos::tachys::html::attribute::Attribute;
use leptos::tachys::html::attribute::any_attribute::AnyAttribute;
use leptos::tachys::html::element::ElementType;
use leptos::tachys::html::event::EventDescriptor;
use leptos::tachys::html::node_ref::NodeRefContainer;
use leptos::tachys::hydration::Cursor;
use leptos::tachys::renderer::types::{Element, Event, Node};
use leptos::tachys::renderer::{RemoveEventHandler, Rndr};
use leptos::tachys::ssr::StreamBuilder;
use leptos::tachys::view::any_view::AnyViewState;
use leptos::tachys::view::{Position, PositionState};
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast, JsValue};

use super::call::CallMut;
use super::value::{IntoValue, Part, Value};

type Name = Cow<'static, str>;
type Handler = Box<dyn CallMut<Event, ()>>;
type Reference = Box<dyn FnOnce(&Element)>;

const SVG: &str = "http://www.w3.org/2000/svg";

/// An element before it is built. It is boxed, since it is handed from one method to the next.
pub struct El(Box<Parts>);

struct Parts {
    tag: &'static str,
    namespace: Option<&'static str>,
    settings: Vec<(Place, Value)>,
    children: Vec<AnyView>,
    local: SendWrapper<Local>,
}

/// What never leaves the page's thread.
#[derive(Default)]
struct Local {
    listeners: Vec<(Name, Handler)>,
    reference: Option<Reference>,
}

/// What of an element is set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Attribute(&'static str),
    Class(&'static str),
    Style(&'static str),
    Property(&'static str),
}

impl El {
    pub(crate) fn html(tag: &'static str) -> Self {
        Self::new(tag, None)
    }

    pub(crate) fn svg(tag: &'static str) -> Self {
        Self::new(tag, Some(SVG))
    }

    fn new(tag: &'static str, namespace: Option<&'static str>) -> Self {
        let local = SendWrapper::new(Local::default());
        Self(Box::new(Parts { tag, namespace, settings: Vec::new(), children: Vec::new(), local }))
    }

    #[inline(never)]
    fn set(mut self, place: Place, value: Value) -> Self {
        self.0.settings.push((place, value));
        self
    }

    #[inline(never)]
    fn push(mut self, child: AnyView) -> Self {
        self.0.children.push(child);
        self
    }

    #[inline(never)]
    fn listen(mut self, name: Name, handler: Handler) -> Self {
        self.0.local.listeners.push((name, handler));
        self
    }

    /// Adds something inside.
    #[must_use]
    pub fn child<C: RenderHtml + Send>(self, child: C) -> Self {
        self.push(child.into_any())
    }

    /// Sets an attribute.
    #[must_use]
    pub fn attr(self, name: &'static str, value: impl IntoValue) -> Self {
        self.set(Place::Attribute(name), value.into_value())
    }

    /// Sets the classes, or whether one of them is there.
    #[must_use]
    pub fn class(self, class: impl Part) -> Self {
        let (name, value) = class.part();
        self.set(name.map_or(Place::Attribute("class"), Place::Class), value)
    }

    /// Sets the style, or one property of it.
    #[must_use]
    pub fn style(self, style: impl Part) -> Self {
        let (name, value) = style.part();
        self.set(name.map_or(Place::Attribute("style"), Place::Style), value)
    }

    /// Sets a property of the object in the browser.
    #[must_use]
    pub fn prop(self, name: &'static str, value: impl IntoValue) -> Self {
        self.set(Place::Property(name), value.into_value())
    }

    /// Calls `handler` at each event of a kind.
    #[expect(clippy::needless_pass_by_value, reason = "as `view!` calls it")]
    #[must_use]
    pub fn on<E>(self, event: E, mut handler: impl FnMut(E::EventType) + 'static) -> Self
    where
        E: EventDescriptor,
        E::EventType: JsCast,
    {
        self.listen(event.name(), Box::new(move |event: Event| handler(event.unchecked_into())))
    }

    /// Says where the element is to be found once it is built.
    #[must_use]
    pub fn node_ref<E>(mut self, reference: NodeRef<E>) -> Self
    where
        E: ElementType,
        E::Output: JsCast + Clone + 'static,
    {
        self.0.local.reference = Some(Box::new(move |element| reference.load(element)));
        self
    }
}

impl Place {
    /// Sets it, where it differs from what it was.
    fn set(self, element: &Element, value: &Value, before: Option<&Value>) {
        let was = before.and_then(Value::text);
        match (self, value.text()) {
            (Self::Property(name), _) => match value {
                Value::Nothing if before.is_none() => {}
                Value::Flag(flag) => Rndr::set_property_or_value(element, name, &JsValue::from_bool(*flag)),
                _ => {
                    let value = value.text().map_or(JsValue::UNDEFINED, JsValue::from_str);
                    Rndr::set_property_or_value(element, name, &value);
                }
            },
            (_, is) if is == was => {}
            (Self::Attribute(name), Some(text)) => Rndr::set_attribute(element, name, text),
            (Self::Attribute(name), None) => Rndr::remove_attribute(element, name),
            (Self::Class(name), Some(_)) => Rndr::add_class(&Rndr::class_list(element), name),
            (Self::Class(name), None) => Rndr::remove_class(&Rndr::class_list(element), name),
            (Self::Style(name), Some(text)) => Rndr::set_css_property(&Rndr::style(element), name, text),
            (Self::Style(name), None) => Rndr::remove_css_property(&Rndr::style(element), name),
        }
    }
}

/// A setting of an element that is built.
enum Setting {
    Fixed(Value),
    Live(RenderEffect<Value>),
}

impl Setting {
    fn new(place: Place, value: Value, element: &Element, before: Option<Value>) -> Self {
        let Value::Computed(mut compute) = value else {
            place.set(element, &value, before.as_ref());
            return Self::Fixed(value);
        };
        let element = element.clone();
        let run = move |before: Option<Value>| {
            let value = compute.call_mut(());
            place.set(&element, &value, before.as_ref());
            value
        };
        Self::Live(RenderEffect::new_with_value(run, before))
    }

    fn value(self) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Live(effect) => effect.take_value(),
        }
    }
}

/// An element that is built.
pub struct Built {
    element: Element,
    tag: &'static str,
    settings: Vec<(Place, Setting)>,
    listeners: Vec<RemoveEventHandler<Element>>,
    children: Vec<AnyViewState>,
}

fn listen(element: &Element, local: Local) -> Vec<RemoveEventHandler<Element>> {
    if let Some(reference) = local.reference {
        reference(element);
    }
    let attach = |(name, mut handler): (Name, Handler)| {
        let owner = Owner::current().unwrap_or_default();
        Rndr::add_event_listener(element, &name, Box::new(move |event| owner.with(|| handler.call_mut(event))))
    };
    local.listeners.into_iter().map(attach).collect()
}

impl Render for El {
    type State = Built;

    fn build(self) -> Built {
        let Parts { tag, namespace, settings, children, local } = *self.0;
        let element = Rndr::create_element(tag, namespace);
        let settings =
            settings.into_iter().map(|(place, value)| (place, Setting::new(place, value, &element, None))).collect();
        let listeners = listen(&element, local.take());
        let children = children
            .into_iter()
            .map(|child| {
                let mut child = child.build();
                child.mount(&element, None);
                child
            })
            .collect();
        Built { element, tag, settings, listeners, children }
    }

    fn rebuild(self, built: &mut Built) {
        let same = self.0.tag == built.tag
            && self.0.children.len() == built.children.len()
            && self.0.settings.iter().map(|(place, _)| place).eq(built.settings.iter().map(|(place, _)| place));
        if !same {
            let mut new = self.build();
            built.insert_before_this(&mut new);
            built.unmount();
            *built = new;
            return;
        }
        let Parts { settings, children, local, .. } = *self.0;
        let before = std::mem::take(&mut built.settings);
        built.settings = settings
            .into_iter()
            .zip(before)
            .map(|((place, value), (_, before))| (place, Setting::new(place, value, &built.element, before.value())))
            .collect();
        // The old listeners go first: they and the new ones may be of the same kind.
        built.listeners.clear();
        built.listeners = listen(&built.element, local.take());
        for (child, state) in children.into_iter().zip(&mut built.children) {
            child.rebuild(state);
        }
    }
}

impl Mountable for Built {
    fn unmount(&mut self) {
        self.element.unmount();
    }

    fn mount(&mut self, parent: &Element, marker: Option<&Node>) {
        self.element.mount(parent, marker);
    }

    fn insert_before_this(&self, child: &mut dyn Mountable) -> bool {
        self.element.insert_before_this(child)
    }

    fn elements(&self) -> Vec<Element> {
        vec![self.element.clone()]
    }
}

impl AddAnyAttr for El {
    type Output<A: Attribute> = <AnyView as AddAnyAttr>::Output<A>;

    fn add_any_attr<A: Attribute>(self, attribute: A) -> Self::Output<A> {
        self.into_any().add_any_attr(attribute)
    }
}

/// The console is never drawn by the server, so of this only the way to [`AnyView`] is ever used.
impl RenderHtml for El {
    type AsyncOutput = Self;
    type Owned = Self;

    const MIN_LENGTH: usize = 0;

    fn dry_resolve(&mut self) {}

    async fn resolve(self) -> Self {
        self
    }

    fn to_html_with_buf(self, _: &mut String, _: &mut Position, _: bool, _: bool, _: Vec<AnyAttribute>) {}

    fn to_html_async_with_buf<const OUT_OF_ORDER: bool>(
        self,
        _: &mut StreamBuilder,
        _: &mut Position,
        _: bool,
        _: bool,
        _: Vec<AnyAttribute>,
    ) {
    }

    fn hydrate<const FROM_SERVER: bool>(self, _: &Cursor, _: &PositionState) -> Built {
        self.build()
    }

    fn into_owned(self) -> Self {
        self
    }
}
