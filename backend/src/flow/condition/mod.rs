//! Conditions: CEL, compiled once when a flow is compiled, and found by their text.
//!
//! Length and depth are bounded when a condition is compiled, and the work of evaluating it by a budget of steps; see
//! [`meter`]. Both run on a large stack.

mod meter;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators};
use cel::common::types::CelBool;
use cel::objects::Key;
use cel::{Context, Env, ExecutionError, Program, Value as Cel};
use serde_json::Value;

use self::meter::{METER, Meter, STEPS};
use super::stack::on_large_stack;
use super::template::excerpt;
use super::{EvalError, MemberPath, Scope, work_limit};
use crate::flow::limits::{MAX_CONDITION, MAX_DEPTH};

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    meter::declare(&mut env).expect("no other overload has these names");
    Arc::new(env)
});

/// The functions that conditions may call, in addition to operators and macros.
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

/// Compiled conditions. A condition that was not added is compiled for each evaluation.
#[derive(Debug, Default)]
pub struct Conditions {
    conditions: HashMap<String, Condition>,
}

#[derive(Debug)]
struct Condition {
    /// The condition as it was written.
    program: Program,
    /// The condition with calls that take from its budget.
    metered: IdedExpr,
}

impl Conditions {
    /// Compiles and stores a condition. The error says why it is not valid.
    pub fn add(&mut self, condition: &str) -> Result<(), EvalError> {
        if !self.conditions.contains_key(condition) {
            self.conditions.insert(condition.to_owned(), compile(condition)?);
        }
        Ok(())
    }

    /// Returns the names that an added condition reads, except variables of its comprehensions.
    pub fn names(&self, condition: &str) -> Vec<String> {
        let Some(Condition { program, .. }) = self.conditions.get(condition) else { return Vec::new() };
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

    /// Returns the fields of a name that an added condition reads, except those that it only tests with `has`.
    pub fn fields(&self, condition: &str, name: &str) -> BTreeSet<String> {
        let paths = self.paths(condition).into_iter().filter(|path| path[0] == name);
        paths.filter_map(|path| path.into_iter().nth(1)).collect()
    }

    /// Returns the members that an added condition reads, as paths from a name, such as `decision`, `option`, except
    /// those that it only tests with `has`.
    pub fn paths(&self, condition: &str) -> BTreeSet<MemberPath> {
        let mut found = BTreeSet::new();
        if let Some(Condition { program, .. }) = self.conditions.get(condition) {
            visit(&program.expression().expr, &mut |expr| found.extend(path_of(expr).filter(|path| path.len() > 1)));
        }
        found
    }

    /// Returns the texts that an added condition compares members with, by `==`, `!=` or `in`.
    pub fn compared(&self, condition: &str) -> BTreeSet<(MemberPath, String)> {
        let mut found = BTreeSet::new();
        if let Some(Condition { program, .. }) = self.conditions.get(condition) {
            visit(&program.expression().expr, &mut |expr| found.extend(compared_in(expr)));
        }
        found
    }

    /// Evaluates a condition. Returns `None` if it meets a missing name or field, or a field of null. Fails if the
    /// result is not a boolean, or if the budget is exceeded.
    pub fn answer(&self, condition: &str, scope: &Scope) -> Result<Option<bool>, EvalError> {
        match self.conditions.get(condition) {
            Some(compiled) => answer(compiled, condition, scope),
            None => answer(&compile(condition)?, condition, scope),
        }
    }
}

fn compile(condition: &str) -> Result<Condition, EvalError> {
    if condition.len() > MAX_CONDITION {
        return Err(EvalError(format!("the condition is longer than {MAX_CONDITION} bytes")));
    }
    on_large_stack(|| {
        let program = ENV.compile(condition).map_err(|errors| {
            let reasons: Vec<_> = errors.errors.iter().map(|error| plain(&error.msg)).collect();
            EvalError(format!("the condition {} cannot be read: {}", excerpt(condition), reasons.join("; ")))
        })?;
        if depth(&program.expression().expr) > MAX_DEPTH {
            let shown = excerpt(condition);
            return Err(EvalError(format!(
                "the condition {shown} nests its operators deeper than {MAX_DEPTH}; write a long chain as a list, or \
                 compute parts of it in a `set` node"
            )));
        }
        let functions = program.references().functions().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let is_unknown =
            |name: &&String| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !FUNCTIONS.contains(&name.as_str());
        match functions.iter().find(is_unknown) {
            Some(name) => {
                Err(EvalError(format!("the condition {} calls `{name}`, which CEL does not have", excerpt(condition))))
            }
            None => Ok(Condition { metered: meter::metered(program.expression().clone()), program }),
        }
    })
}

/// Shortens a message of the parser: removes the list of expected tokens.
fn plain(message: &str) -> String {
    let message = message.split(" expecting ").next().unwrap_or(message);
    message.trim().trim_start_matches("Syntax error: ").replace("'<EOF>'", "end")
}

fn answer(compiled: &Condition, condition: &str, scope: &Scope) -> Result<Option<bool>, EvalError> {
    work_limit::check()?;
    let references = compiled.program.references();
    let meter = Meter::new(STEPS);
    let mut context = Context::with_env(ENV.clone());
    for name in references.variables() {
        if let Some(value) = scope.0.get(name) {
            context.add_variable_from_value(name, from_json(value));
        }
    }
    context.add_variable_as_val(METER, Box::new(meter.clone()));
    let outcome = on_large_stack(|| {
        Cel::resolve_val(&compiled.metered, &context).map(|value| match value.downcast_ref::<CelBool>() {
            Some(truth) => Ok(*truth.inner()),
            None => Err(value.get_type().name().to_owned()),
        })
    });
    work_limit::count((STEPS - meter.left()) * work_limit::PER_STEP);
    let shown = excerpt(condition);
    match outcome {
        _ if meter.is_spent() => Err(EvalError(format!(
            "the condition {shown} takes more than {STEPS} steps; let it look at fewer items or smaller values, or match \
             simpler patterns"
        ))),
        Ok(Ok(truth)) => Ok(Some(truth)),
        Ok(Err(other)) => {
            Err(EvalError(format!("the condition {shown} is neither true nor false, but of type {other}")))
        }
        Err(error) if is_missing(&error, |name| references.has_variable(name)) => Ok(None),
        Err(error) => Err(EvalError(format!("the condition {shown} cannot be evaluated: {error}"))),
    }
}

/// Returns the path that an expression reads: `name`, `name.field` or `name["field"]`, to any depth.
fn path_of(expr: &Expr) -> Option<MemberPath> {
    let (of, field) = match expr {
        Expr::Ident(name) => return Some(vec![name.clone()]),
        Expr::Select(select) if !select.test => (&*select.operand, select.field.as_str()),
        Expr::Call(call) if call.func_name == operators::INDEX => match &call.args[..] {
            [of, field] => (of, text_of(&field.expr)?),
            _ => return None,
        },
        _ => return None,
    };
    let mut path = path_of(&of.expr)?;
    path.push(field.to_owned());
    Some(path)
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Returns the texts that an expression compares a path with.
fn compared_in(expr: &Expr) -> Vec<(MemberPath, String)> {
    let Expr::Call(call) = expr else { return Vec::new() };
    let [one, other] = &call.args[..] else { return Vec::new() };
    let (path, texts): (_, Vec<&str>) = match call.func_name.as_str() {
        operators::EQUALS | operators::NOT_EQUALS => match (text_of(&one.expr), text_of(&other.expr)) {
            (None, Some(text)) => (path_of(&one.expr), vec![text]),
            (Some(text), None) => (path_of(&other.expr), vec![text]),
            _ => return Vec::new(),
        },
        operators::IN => match &other.expr {
            Expr::List(list) => (path_of(&one.expr), list.elements.iter().filter_map(|of| text_of(&of.expr)).collect()),
            _ => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let Some(path) = path.filter(|path| path.len() > 1) else { return Vec::new() };
    texts.into_iter().map(|text| (path.clone(), text.to_owned())).collect()
}

/// Calls `seen` with an expression and all its subexpressions.
fn visit<'e>(expr: &'e Expr, seen: &mut dyn FnMut(&'e Expr)) {
    seen(expr);
    for inner in inner(expr) {
        visit(&inner.expr, seen);
    }
}

/// Returns the depth of an expression; 1 for a name.
fn depth(expr: &Expr) -> usize {
    1 + inner(expr).into_iter().map(|inner| depth(&inner.expr)).max().unwrap_or(0)
}

/// Returns the direct subexpressions of an expression.
fn inner<'e>(expr: &'e Expr) -> Vec<&'e IdedExpr> {
    let entry = |entry: &'e IdedEntryExpr| match &entry.expr {
        EntryExpr::StructField(field) => [None, Some(&field.value)],
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
    };
    match expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(entry).flatten().collect(),
        Expr::Struct(of) => of.entries.iter().flat_map(entry).flatten().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

/// Whether an error means that a name or field is missing.
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

/// Converts JSON to CEL. Every integer becomes an `int` if it fits: JSON has no unsigned numbers, and `count + 1` must
/// work.
fn from_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Cel::Int(integer),
            (None, Some(integer)) => Cel::UInt(integer),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(from_json).collect())),
        Value::Object(map) => {
            let map: HashMap<Key, Cel> =
                map.iter().map(|(key, value)| (Key::from(key.as_str()), from_json(value))).collect();
            Cel::Map(map.into())
        }
    }
}
