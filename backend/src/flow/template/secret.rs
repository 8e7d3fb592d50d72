//! Secrets in templates. Their values are unknown here: a template that inserts a secret records its position, and no
//! marker in the text, so no value can pass for a secret.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::Error;
use minijinja::value::{Object, ObjectRepr, Value as Rendered};
use parking_lot::Mutex;
use serde_json::Value;
use shared::request::SecretUse;

use super::restrictions::Uses;
use super::{MAX_RENDERED, Templates, excerpt, failed, from_json, is_plain, render_each, to_json};
use crate::flow::stack::on_large_stack;
use crate::flow::{EvalError, Scope, work_limit};
use crate::limits::Size;

/// The name of the secrets in templates.
const NAMESPACE: &str = "secret";

/// The text rendered so far, with the positions of secrets.
#[derive(Debug, Default)]
struct RenderedText {
    text: Vec<u8>,
    places: Vec<SecretSpan>,
    /// The name of a secret that the template tried to change instead of inserting it.
    changed: Option<String>,
}

/// The position of a secret, and whether it is percent-encoded there.
#[derive(Debug)]
struct SecretSpan {
    start: usize,
    name: String,
    encoded: bool,
}

#[derive(Debug, Clone, Default)]
struct Pages(Arc<Mutex<RenderedText>>);

impl Pages {
    fn with<T>(&self, what: impl FnOnce(&mut RenderedText) -> T) -> T {
        what(&mut self.0.lock())
    }
}

impl io::Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|page| {
            if page.text.len() + bytes.len() > MAX_RENDERED {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            page.text.extend_from_slice(bytes);
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value of `secret` in templates.
#[derive(Debug)]
struct Namespace(Pages);

impl Object for Namespace {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Rendered) -> Option<Rendered> {
        let name = key.as_str().filter(|name| is_name(name))?;
        Some(Rendered::from_object(SecretObject { name: name.to_owned(), encoded: false, pages: self.0.clone() }))
    }
}

/// A secret, by name.
#[derive(Debug, Clone)]
struct SecretObject {
    name: String,
    encoded: bool,
    pages: Pages,
}

impl SecretObject {
    fn at(&self, start: usize) -> SecretSpan {
        SecretSpan { start, name: self.name.clone(), encoded: self.encoded }
    }
}

impl Object for SecretObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    /// Called when a secret is converted to a text (`~`, a filter). The result would not be the secret, so this is
    /// recorded as an error.
    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pages.with(|page| page.changed = Some(self.name.clone()));
        f.write_str(&SecretUse::shown(&self.name))
    }
}

fn is_name(name: &str) -> bool {
    (1..=100).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Writes the placeholder of a secret and records its position. `None` if the value is not a secret.
pub(super) fn insert(out: &mut minijinja::Output<'_>, value: &Rendered) -> Option<Result<(), Error>> {
    let secret = value.downcast_object_ref::<SecretObject>()?;
    let shown = SecretUse::shown(&secret.name);
    let start = secret.pages.with(|page| page.text.len());
    if let Err(error) = out.write_str(&shown) {
        return Some(Err(error.into()));
    }
    secret.pages.with(|page| {
        // Text inside a block, filter or macro is not written to the page directly.
        if page.text.len() == start + shown.len() {
            page.places.push(secret.at(start));
        } else {
            page.changed = Some(secret.name.clone());
        }
    });
    Some(Ok(()))
}

/// Returns a secret that will be percent-encoded as a component of a URL. `None` if the value is not a secret.
pub(super) fn encoded(value: &Rendered) -> Option<Rendered> {
    let secret = value.downcast_object_ref::<SecretObject>()?;
    Some(Rendered::from_object(SecretObject { encoded: true, ..secret.clone() }))
}

impl Templates {
    /// Renders a template to text. Adds the positions of secrets to `secrets`, as positions in the text at `at`.
    pub fn render_request_text(
        &self,
        template: &str,
        scope: &Scope,
        at: &str,
        secrets: &mut Vec<SecretUse>,
    ) -> Result<String, EvalError> {
        match self.render_request_string(template, scope, at, secrets)? {
            Value::String(text) => Ok(text),
            other => Ok(other.to_string()),
        }
    }

    /// Renders every string in a value, like [`Self::render_request_text`]. A string that consists of one `{{
    /// expression }}` keeps its JSON type. Fails as soon as the result exceeds the limits of a value.
    pub fn render_request_value(
        &self,
        value: &Value,
        scope: &Scope,
        at: &str,
        secrets: &mut Vec<SecretUse>,
    ) -> Result<Value, EvalError> {
        let mut render = |template: &str, at: &str| self.render_request_string(template, scope, at, secrets);
        render_each(value, at, &mut Size::default(), &mut render)
    }

    fn render_request_string(
        &self,
        template: &str,
        scope: &Scope,
        at: &str,
        secrets: &mut Vec<SecretUse>,
    ) -> Result<Value, EvalError> {
        if is_plain(template) {
            return Ok(Value::from(template));
        }
        let Some(Uses { names, .. }) = self.uses.get(template) else {
            let mut alone = Self::default();
            alone.add(template)?;
            return alone.render_request_string(template, scope, at, secrets);
        };
        work_limit::check()?;
        let pages = Pages::default();
        let seen = |pages: &Pages| context(scope, names, pages);
        // Writing to a page by position has no budget, so the template is first rendered within one.
        let value = on_large_stack(|| {
            if let (Some(value), _) = self.run(template, seen(&pages))? {
                match value.downcast_object_ref::<SecretObject>() {
                    Some(secret) => {
                        let shown = SecretUse::shown(&secret.name);
                        pages.with(|page| {
                            page.places.push(secret.at(0));
                            page.text = shown.clone().into_bytes();
                        });
                        Ok(Value::String(shown))
                    }
                    None => to_json(&value, 0),
                }
            } else {
                pages.with(|page| *page = RenderedText::default());
                let compiled = self.environment.get_template(template)?;
                compiled.render_captured_to(seen(&pages), pages.clone())?;
                Ok(Value::String(pages.with(|page| String::from_utf8_lossy(&page.text).into_owned())))
            }
        });
        let value = value.map_err(|error| failed(template, &error))?;
        let (places, changed) = pages.with(|page| (std::mem::take(&mut page.places), page.changed.take()));
        if let Some(name) = changed {
            return Err(EvalError(format!(
                "the template {} changes the secret `{name}`: a secret can only be inserted as it is, \
                 `{{{{ secret.{name} }}}}`, or with `| urlencode`",
                excerpt(template)
            )));
        }
        for SecretSpan { start, name, encoded } in places {
            let end = start + SecretUse::shown(&name).len();
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            secrets.push(SecretUse { at: at.to_owned(), start: place(start), end: place(end), name, encoded });
        }
        Ok(value)
    }
}

/// Builds the context of a template: the names of the scope that it reads, and secrets by name.
fn context(scope: &Scope, wanted: &HashSet<String>, pages: &Pages) -> Rendered {
    let names = scope.0.iter().filter(|(name, _)| wanted.contains(name.as_str()));
    let names = names.filter(|(name, _)| *name != NAMESPACE).map(|(name, value)| (name.as_str(), from_json(value)));
    let all = names.chain([(NAMESPACE, Rendered::from_object(Namespace(pages.clone())))]);
    Rendered::from_object(all.map(|(name, value)| (Rendered::from(name), value)).collect::<IndexMap<_, _>>())
}
