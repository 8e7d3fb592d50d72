//! The address of the page: what it is, how it changes, and that links of the console change it without loading the
//! page again. Which page an address shows is for `app` to say.

use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};

/// How an address is gone to.
#[derive(Debug, Clone, Copy)]
pub struct NavigateOptions {
    /// It takes the place of the one before in the browser's history.
    pub replace: bool,
    /// The page is shown from its top.
    pub scroll: bool,
}

impl Default for NavigateOptions {
    fn default() -> Self {
        Self { replace: false, scroll: true }
    }
}

/// The address of the page. Cheap to copy into closures.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    /// From `/` to before the query.
    pub pathname: RwSignal<String>,
    /// The query, without `?`.
    pub search: RwSignal<String>,
    /// From `#`.
    pub hash: RwSignal<String>,
}

/// Named values: those of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Those of a query, without `?`.
    pub fn of_query(query: &str) -> Self {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        };
        Self(query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect())
    }

    /// The last value of a name.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }
}

/// A text without `%` escapes; what is no escape stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The part of a path behind its first: the id in `/runs/:id`.
fn id_of(path: &str) -> Option<(&str, String)> {
    let (section, id) = path.trim_matches('/').split_once('/')?;
    Some((section, decoded(id)))
}

impl Address {
    /// Follows the browser: its buttons for back and forward, and clicks on links.
    pub fn follow() -> Self {
        let location = window().location();
        let text = |part: Result<String, JsValue>| RwSignal::new(part.unwrap_or_default());
        let search = location.search().unwrap_or_default();
        let address = Self {
            pathname: text(location.pathname()),
            search: RwSignal::new(search.trim_start_matches('?').to_owned()),
            hash: text(location.hash()),
        };
        window_event_listener_untyped("popstate", move |_| address.read());
        window_event_listener_untyped("click", move |event| address.clicked(event.unchecked_ref()));
        address
    }

    /// Takes over what the browser shows.
    fn read(self) {
        let location = window().location();
        let search = location.search().unwrap_or_default();
        let parts = [
            (self.search, search.trim_start_matches('?').to_owned()),
            (self.hash, location.hash().unwrap_or_default()),
            (self.pathname, location.pathname().unwrap_or_default()),
        ];
        for (signal, text) in parts {
            if signal.with_untracked(|before| *before != text) {
                signal.set(text);
            }
        }
    }

    fn go(self, to: &str, options: NavigateOptions) {
        let (Ok(history), location) = (window().history(), window().location()) else { return };
        let before = location.href().unwrap_or_default();
        let done = if options.replace {
            history.replace_state_with_url(&JsValue::NULL, "", Some(to))
        } else {
            history.push_state_with_url(&JsValue::NULL, "", Some(to))
        };
        // The browser refuses addresses of other sites, and those that are none.
        if done.is_err() || location.href().is_ok_and(|now| now == before) {
            return;
        }
        self.read();
        if options.scroll {
            window().scroll_to_with_x_and_y(0.0, 0.0);
        }
    }

    /// Follows a link inside the console, where the browser would load the page again.
    fn clicked(self, event: &web_sys::MouseEvent) {
        if event.default_prevented()
            || event.button() != 0
            || event.meta_key()
            || event.alt_key()
            || event.ctrl_key()
            || event.shift_key()
        {
            return;
        }
        let target = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let Some(link) = target.and_then(|target| target.closest("a[href]").ok().flatten()) else { return };
        let link: web_sys::HtmlAnchorElement = link.unchecked_into();
        let location = window().location();
        let other_site = location.origin().ok() != Some(link.origin());
        if other_site || !link.target().is_empty() || link.has_attribute("download") {
            return;
        }
        // A link within the page is the browser's: it moves the focus too.
        if !link.hash().is_empty()
            && location.pathname().ok() == Some(link.pathname())
            && location.search().ok() == Some(link.search())
        {
            return;
        }
        event.prevent_default();
        self.go(&format!("{}{}{}", link.pathname(), link.search(), link.hash()), NavigateOptions::default());
    }
}

/// The address of the page.
pub fn use_location() -> Address {
    expect_context()
}

/// Goes to an address of the console.
pub fn use_navigate() -> impl Fn(&str, NavigateOptions) + Copy + 'static {
    let address = use_location();
    move |to: &str, options: NavigateOptions| address.go(to, options)
}

/// The query of the address.
pub fn use_query_map() -> Memo<Params> {
    let address = use_location();
    Memo::new(move |_| address.search.with(|search| Params::of_query(search)))
}

/// The id in the path, as long as the path is of the section that it is of now: a page that is being left keeps its own.
pub fn use_id() -> Memo<Option<String>> {
    let address = use_location();
    let section = |path: &str| id_of(path).map(|(section, _)| section.to_owned());
    let mine = address.pathname.with_untracked(|path| section(path));
    Memo::new(move |before: Option<&Option<String>>| {
        address.pathname.with(|path| match id_of(path) {
            Some((section, id)) if Some(section) == mine.as_deref() => Some(id),
            _ => before.cloned().flatten(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let params = Params::of_query("next=%2Fruns%3Fa%3Db&q=two+words&empty=&odd=100%&q=last");
        assert_eq!(params.get("next").as_deref(), Some("/runs?a=b"));
        assert_eq!(params.get("q").as_deref(), Some("last"));
        assert_eq!(params.get("empty").as_deref(), Some(""));
        assert_eq!(params.get("odd").as_deref(), Some("100%"));
        assert_eq!(params.get("none"), None);
    }

    #[test]
    fn the_id_is_what_follows_the_section() {
        assert_eq!(id_of("/runs/a%20b/"), Some(("runs", "a b".to_owned())));
        assert_eq!(id_of("/runs"), None);
    }
}
