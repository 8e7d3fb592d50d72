//! Templates: minijinja with strict undefined names, a limit of work, and no HTML escaping. Strings are rendered as
//! they are, everything else as JSON.
//!
//! Templates are compiled once, when a flow is compiled, and found by their text. Both compiling and rendering run on a
//! large stack.

mod filters;
mod meter;
mod restrictions;
mod secret;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use indexmap::IndexMap;
use minijinja::machinery::{eval, get_compiled_template, make_string_output};
use minijinja::value::{Value as Rendered, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Number, Value};
use shared::error::pointer;

use self::restrictions::Uses;
use super::stack::on_large_stack;
use super::{EvalError, MemberPath, Scope, work_limit};
use crate::flow::limits::{MAX_NESTING, MAX_TEMPLATE};
use crate::limits::{self, Exceeded, Size};

/// The characters that are not encoded in a component of a URL (RFC 3986, unreserved).
const PIECE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The maximum number of instructions of the template engine per rendering.
const FUEL: u64 = 200_000;
/// The number of instructions that are counted for the end of a rendering that fails.
const FUEL_OF_FAILURE: u64 = 1000;
/// The maximum length of a rendered text, in bytes.
const MAX_RENDERED: usize = 4 * 1024 * 1024;

/// Compiled templates. A template that was not added is compiled for each rendering.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    /// What each added template uses. Only the names that it reads are converted.
    uses: HashMap<String, Uses>,
}

impl Default for Templates {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(100);
        filters::declare(&mut environment);
        meter::declare(&mut environment);
        environment.add_filter("urlencode", urlencode);
        environment.set_formatter(|out, state, value| {
            if let Some(inserted) = secret::insert(out, value) {
                return inserted;
            }
            meter::weigh(state, value, 1)?;
            let text = match value.as_str() {
                Some(text) => return out.write_str(text).map_err(Error::from),
                None => to_json(value, 0)?.to_string(),
            };
            meter::take(state, text.len() as u64)?;
            out.write_str(&text).map_err(Error::from)
        });
        Self { environment, uses: HashMap::new() }
    }
}

impl Templates {
    /// Compiles and stores a template. The error says why it is not valid.
    pub fn add(&mut self, template: &str) -> Result<(), EvalError> {
        if is_plain(template) || self.uses.contains_key(template) {
            return Ok(());
        }
        if template.len() > MAX_TEMPLATE {
            return Err(EvalError(format!("the template is longer than {MAX_TEMPLATE} bytes")));
        }
        let uses = on_large_stack(|| compile(&mut self.environment, template));
        let bad = |why: String| EvalError(format!("the template {} cannot be read: {why}", excerpt(template)));
        self.uses.insert(template.to_owned(), uses.map_err(bad)?);
        Ok(())
    }

    /// Returns the names that an added template reads, sorted.
    pub fn names(&self, template: &str) -> Vec<String> {
        let mut names: Vec<String> = self.uses.get(template).iter().flat_map(|uses| &uses.names).cloned().collect();
        names.retain(|name| !self.environment.globals().any(|(global, _)| global == name));
        names.sort_unstable();
        names
    }

    /// Returns the members that an added template reads, as paths from a name, such as `decision`, `option`, except
    /// those that may be missing (`default`, `is defined`).
    pub fn paths(&self, template: &str) -> BTreeSet<MemberPath> {
        self.uses.get(template).map(|uses| uses.paths.clone()).unwrap_or_default()
    }

    /// Returns what an added template uses and does not exist, in words: filters, tests and functions. Rendering fails
    /// as soon as it gets there.
    pub fn unknown(&self, template: &str) -> Vec<String> {
        let Some(uses) = self.uses.get(template) else { return Vec::new() };
        // The engine has no list of its filters and tests, but says which it does not know.
        let is = |kind, result: Result<_, Error>| result.is_err_and(|error| error.kind() == kind);
        let has_filter = |name: &str| {
            !is(ErrorKind::UnknownFilter, self.environment.empty_state().apply_filter(name, &[]).map(drop))
        };
        let has_test =
            |name: &str| !is(ErrorKind::UnknownTest, self.environment.empty_state().perform_test(name, &[]).map(drop));
        let has_function = |name: &str| self.environment.globals().any(|(global, _)| global == name);
        let filters = uses.filters.iter().filter(|name| !has_filter(name));
        let tests = uses.tests.iter().filter(|name| !has_test(name));
        let functions = uses.functions.iter().filter(|name| !has_function(name));
        let filters = filters.map(|name| format!("there is no filter `{name}`"));
        let tests = tests.map(|name| format!("there is no test `{name}`"));
        let functions = functions.map(|name| {
            if has_filter(name) {
                format!("`{name}` is a filter, not a function: write `value | {name}`")
            } else {
                format!("there is no function `{name}`")
            }
        });
        filters.chain(tests).chain(functions).collect()
    }

    /// Renders a template to text.
    pub fn render(&self, template: &str, scope: &Scope) -> Result<String, EvalError> {
        Ok(match self.render_string(template, scope)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// Renders every string in a value. A string that consists of one `{{ expression }}` keeps its JSON type. Fails as
    /// soon as the result exceeds the limits of a value.
    pub fn render_value(&self, value: &Value, scope: &Scope) -> Result<Value, EvalError> {
        let mut render = |template: &str, _: &str| self.render_string(template, scope);
        let rendered = render_each(value, "", &mut Size::default(), &mut render)?;
        limits::check(&rendered).map_err(too_large)?;
        Ok(rendered)
    }

    fn render_string(&self, template: &str, scope: &Scope) -> Result<Value, EvalError> {
        if is_plain(template) {
            return Ok(Value::String(template.to_owned()));
        }
        let Some(Uses { names, .. }) = self.uses.get(template) else {
            let mut alone = Self::default();
            alone.add(template)?;
            return alone.render_string(template, scope);
        };
        work_limit::check()?;
        on_large_stack(|| self.evaluate(template, context(scope, names))).map_err(|error| failed(template, &error))
    }

    fn evaluate(&self, template: &str, context: Rendered) -> Result<Value, Error> {
        match self.run(template, context)? {
            (Some(value), _) => to_json(&value, 0),
            (None, text) if text.len() > MAX_RENDERED => {
                let message = format!("it renders to more than {MAX_RENDERED} bytes");
                Err(Error::new(ErrorKind::InvalidOperation, message))
            }
            (None, text) => Ok(Value::String(text)),
        }
    }

    /// Runs an added template within its budget. Returns the value of a single expression, otherwise the text.
    fn run(&self, template: &str, context: Rendered) -> Result<(Option<Rendered>, String), Error> {
        let is_value = whole_expression(template).is_some();
        let compiled = self.environment.get_template(template)?;
        let code = meter::metered(&get_compiled_template(&compiled).instructions, is_value);
        let mut text = String::new();
        let blocks = BTreeMap::new();
        let mut evaluated =
            eval(&self.environment, &code, context, &blocks, &mut make_string_output(&mut text), AutoEscape::None);
        match &mut evaluated {
            Ok((_, state)) => meter::count_instructions(state),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => work_limit::count(FUEL * work_limit::PER_STEP),
            // It does not say how far the template got since the meter was last asked.
            Err(_) => work_limit::count(FUEL_OF_FAILURE * work_limit::PER_STEP),
        }
        let (left, _) = evaluated?;
        Ok((left.filter(|_| is_value), text))
    }
}

/// Compiles a template into an environment, under its own text. Returns what it uses.
fn compile(environment: &mut Environment<'static>, template: &str) -> Result<Uses, String> {
    let why = |error: Error| reason(&error);
    let source = match whole_expression(template) {
        Some(expression) => format!("{{{{ {expression} }}}}"),
        None => template.to_owned(),
    };
    let mut uses = restrictions::template(&source)?;
    environment.add_template_owned(template.to_owned(), source).map_err(why)?;
    uses.names.extend(environment.get_template(template).map_err(why)?.undeclared_variables(false));
    Ok(uses)
}

/// Whether a string contains no template syntax, so that it is rendered as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Returns the expression of a string that consists of one `{{ expression }}`. `None` for `{{ a }} and {{ b }}`.
fn whole_expression(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    let inside = inside.strip_suffix(['-', '+']).unwrap_or(inside);
    (!inside.contains("{{") && !inside.contains("}}") && !inside.contains("{%")).then_some(inside)
}

/// Builds the context of a template: the names of the scope that it reads.
fn context(scope: &Scope, names: &HashSet<String>) -> Rendered {
    let wanted = scope.0.iter().filter(|(name, _)| names.contains(name.as_str()));
    Rendered::from_object(
        wanted.map(|(name, value)| (Rendered::from(name), from_json(value))).collect::<IndexMap<_, _>>(),
    )
}

fn from_json(value: &Value) -> Rendered {
    match value {
        Value::Null => Rendered::from(()),
        Value::Bool(truth) => Rendered::from(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Rendered::from(integer),
            (None, Some(integer)) => Rendered::from(integer),
            (None, None) => Rendered::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Rendered::from(text),
        Value::Array(items) => Rendered::from(items.iter().map(from_json).collect::<Vec<_>>()),
        Value::Object(map) => Rendered::from_object(
            map.iter().map(|(key, value)| (Rendered::from(key), from_json(value))).collect::<IndexMap<_, _>>(),
        ),
    }
}

fn to_json(value: &Rendered, depth: usize) -> Result<Value, Error> {
    if depth > MAX_NESTING {
        return Err(Error::new(ErrorKind::BadSerialization, format!("nested deeper than {MAX_NESTING}")));
    }
    let kind = value.kind();
    Ok(match kind {
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => number(value)?,
        ValueKind::String => Value::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable => {
            Value::Array(value.try_iter()?.map(|item| to_json(&item, depth + 1)).collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let mut map = shared::JsonMap::new();
            for key in value.try_iter()? {
                map.insert(key.to_string(), to_json(&value.get_item(&key)?, depth + 1)?);
            }
            Value::Object(map)
        }
        ValueKind::Undefined => return Err(Error::new(ErrorKind::UndefinedError, "there is no such value")),
        _ => return Err(Error::new(ErrorKind::BadSerialization, format!("a {kind} is not a JSON value"))),
    })
}

fn number(value: &Rendered) -> Result<Value, Error> {
    if value.is_integer() {
        if let Ok(integer) = i64::try_from(value.clone()) {
            return Ok(Value::from(integer));
        }
        if let Ok(integer) = u64::try_from(value.clone()) {
            return Ok(Value::from(integer));
        }
    }
    let float = f64::try_from(value.clone())?;
    Number::from_f64(float)
        .map(Value::Number)
        .ok_or_else(|| Error::new(ErrorKind::BadSerialization, format!("{float} is not a JSON number")))
}

/// Encodes a value as a component of a URL, so that it contains no `/`, `?` or `#`. Refuses `.` and `..`, which would
/// lead to another path in any case (WHATWG URL, double-dot segments).
fn urlencode(piece: &Rendered) -> Result<Rendered, Error> {
    if let Some(secret) = secret::encoded(piece) {
        return Ok(secret);
    }
    let piece = piece.to_string();
    if matches!(piece.as_str(), "." | "..") {
        let message = format!("`{piece}` cannot be a segment of a URL");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(url_piece(&piece).into())
}

/// Encodes a text as a component of a URL.
pub fn url_piece(piece: &str) -> String {
    utf8_percent_encode(piece, PIECE).to_string()
}

/// Renders every string in a value, given its place, until the result exceeds the limits of a value.
fn render_each(
    value: &Value,
    at: &str,
    size: &mut Size,
    render: &mut dyn FnMut(&str, &str) -> Result<Value, EvalError>,
) -> Result<Value, EvalError> {
    let mut inside = |name: &str, value: &Value| render_each(value, &format!("{at}{}", pointer([name])), size, render);
    match value {
        Value::String(template) => {
            let rendered = render(template, at)?;
            size.value(&rendered).map_err(too_large)?;
            Ok(rendered)
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| inside(&index.to_string(), item)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), inside(key, value)?)))
            .collect::<Result<_, _>>()
            .map(Value::Object),
        other => Ok(other.clone()),
    }
}

fn too_large(exceeded: Exceeded) -> EvalError {
    EvalError(format!("the rendered value is {exceeded}"))
}

fn failed(template: &str, error: &Error) -> EvalError {
    EvalError(format!("the template {} cannot be rendered: {}", excerpt(template), reason(error)))
}

fn reason(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) if line > 1 => format!("{what} (its line {line})"),
        _ => what,
    }
}

/// Returns the beginning of a template or condition, for messages.
pub(super) fn excerpt(text: &str) -> String {
    const MAX_SHOWN: usize = 60;
    let line = text.trim().lines().next().unwrap_or_default();
    let shown: String = line.chars().take(MAX_SHOWN).collect();
    let more = if shown.len() < text.trim().len() { "…" } else { "" };
    format!("`{shown}{more}`")
}
