//! Conditions: CEL, compiled once when a flow is made ready, and found again by their own text.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators};
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

    /// The names that an added condition reads; not those that stand for the items of a list in it.
    pub fn names(&self, condition: &str) -> Vec<String> {
        let Some(program) = self.programs.get(condition) else { return Vec::new() };
        let mut own = BTreeSet::new();
        visit(&program.expression().expr, &mut |expr| {
            if let Expr::Comprehension(each) = expr {
                own.extend([Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)].into_iter().flatten());
            }
        });
        let references = program.references();
        let read = references.variables().into_iter().map(str::to_owned);
        read.filter(|name| !own.contains(name)).collect()
    }

    /// The fields of a name that an added condition reads; not those that it only looks for with `has`.
    pub fn fields(&self, condition: &str, name: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if let Some(program) = self.programs.get(condition) {
            visit(&program.expression().expr, &mut |expr| found.extend(field_of(expr, name).map(str::to_owned)));
        }
        found
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

/// The field that an expression reads of a name: `name.field`, or `name["field"]`.
fn field_of<'e>(expr: &'e Expr, name: &str) -> Option<&'e str> {
    let is_name = |of: &IdedExpr| matches!(&of.expr, Expr::Ident(ident) if ident == name);
    match expr {
        Expr::Select(select) if !select.test && is_name(&select.operand) => Some(&select.field),
        Expr::Call(call) if call.func_name == operators::INDEX => match &call.args[..] {
            [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] if is_name(of) => {
                Some(field.inner())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Calls `seen` with an expression and everything in it.
fn visit<'e>(expr: &'e Expr, seen: &mut dyn FnMut(&'e Expr)) {
    seen(expr);
    let entry = |entry: &'e IdedEntryExpr| match &entry.expr {
        EntryExpr::StructField(field) => [None, Some(&field.value)],
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
    };
    let inner: Vec<&IdedExpr> = match expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(entry).flatten().collect(),
        Expr::Struct(of) => of.entries.iter().flat_map(entry).flatten().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    };
    for inner in inner {
        visit(&inner.expr, seen);
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
