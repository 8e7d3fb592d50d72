//! Conditions: CEL, compiled once when a flow is made ready, and found again by their own text.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::objects::Key;
use cel::{Context, Env, ExecutionError, Program};
use serde_json::Value;

use super::template::excerpt;
use super::{EvalError, Scope};
use crate::flow::limits::MAX_TEXT;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// What conditions may call, beside operators and macros.
const FUNCTIONS: [&str; 29] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "int",
    "matches",
    "max",
    "min",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "has",
    "not_strictly_false",
];

/// Compiled conditions. One that was not added is compiled where it is asked.
#[derive(Debug, Default)]
pub struct Conditions {
    programs: HashMap<String, Program>,
}

impl Conditions {
    /// Compiles a condition and keeps it. The error says what is wrong with it.
    pub fn add(&mut self, condition: &str) -> Result<(), EvalError> {
        if !self.programs.contains_key(condition) {
            self.programs.insert(condition.to_owned(), compile(condition)?);
        }
        Ok(())
    }

    /// The names that an added condition reads.
    pub fn names(&self, condition: &str) -> Vec<String> {
        let Some(program) = self.programs.get(condition) else { return Vec::new() };
        program.references().variables().into_iter().map(str::to_owned).collect()
    }

    /// Whether a condition holds. A missing name or field, or a field of null, makes it false; anything but a boolean
    /// is an error.
    pub fn holds(&self, condition: &str, scope: &Scope) -> Result<bool, EvalError> {
        match self.programs.get(condition) {
            Some(program) => holds(program, condition, scope),
            None => holds(&compile(condition)?, condition, scope),
        }
    }
}

fn compile(condition: &str) -> Result<Program, EvalError> {
    if condition.len() > MAX_TEXT {
        return Err(EvalError(format!("the condition is longer than {MAX_TEXT} bytes")));
    }
    let program = ENV.compile(condition).map_err(|errors| {
        let reasons: Vec<_> = errors.errors.iter().map(|error| plain(&error.msg)).collect();
        EvalError(format!("the condition {} cannot be read: {}", excerpt(condition), reasons.join("; ")))
    })?;
    let unknown = program
        .references()
        .functions()
        .into_iter()
        .find(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !FUNCTIONS.contains(name))
        .map(str::to_owned);
    match unknown {
        Some(name) => {
            Err(EvalError(format!("the condition {} calls `{name}`, which CEL does not have", excerpt(condition))))
        }
        None => Ok(program),
    }
}

/// The parser's words without its list of everything that it would have taken.
fn plain(message: &str) -> String {
    let message = message.split(" expecting ").next().unwrap_or(message);
    message.trim().trim_start_matches("Syntax error: ").replace("'<EOF>'", "end")
}

fn holds(program: &Program, condition: &str, scope: &Scope) -> Result<bool, EvalError> {
    let references = program.references();
    let mut context = Context::with_env(ENV.clone());
    for name in references.variables() {
        if let Some(value) = scope.0.get(name) {
            context.add_variable_from_value(name, from_json(value));
        }
    }
    match program.execute(&context) {
        Ok(cel::Value::Bool(truth)) => Ok(truth),
        Ok(other) => Err(EvalError(format!(
            "the condition {} is neither true nor false, but of type {}",
            excerpt(condition),
            other.type_of()
        ))),
        Err(error) if is_missing(&error, |name| references.has_variable(name)) => Ok(false),
        Err(error) => Err(EvalError(format!("the condition {} cannot be answered: {error}", excerpt(condition)))),
    }
}

/// Whether an error means that something asked for is not there.
fn is_missing(error: &ExecutionError, is_variable: impl Fn(&str) -> bool) -> bool {
    match error {
        ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) => true,
        ExecutionError::UndeclaredReference(name) => is_variable(name),
        ExecutionError::NoSuchOverload(overload) => {
            matches!(overload.function(), "_._" | "_[_]")
                && overload.argument_types().first().is_some_and(|of| of == "null_type")
        }
        _ => false,
    }
}

/// Every integer becomes a CEL `int` where it fits: JSON has no unsigned numbers, and `count + 1` must work.
fn from_json(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => cel::Value::Int(integer),
            (None, Some(integer)) => cel::Value::UInt(integer),
            (None, None) => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(from_json).collect())),
        Value::Object(map) => {
            let map: HashMap<Key, cel::Value> =
                map.iter().map(|(key, value)| (Key::from(key.as_str()), from_json(value))).collect();
            cel::Value::Map(map.into())
        }
    }
}
