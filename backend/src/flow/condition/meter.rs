//! The budget of one condition: how much work its evaluation may take.
//!
//! CEL has no budget of its own. So a condition is rewritten when it is compiled: every operand of a call, every
//! element of a list or map, and every range, guard and step of a comprehension is wrapped in a call of `@weigh`. The
//! call takes from the budget the cost of evaluating the operand, and of the operation on it (the size of the value).
//! It fails if nothing is left. Names with `@` cannot be written in CEL, so no condition can reach any of this.
//!
//! This is sound: between two calls of `@weigh`, no nodes are evaluated except those that it charges for, and every
//! operation is linear in the sizes of its operands. Once the budget is spent, every comprehension ends at its next
//! element.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    StructExpr, operators,
};
use cel::common::types::{CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelString, DYN_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use parking_lot::Mutex;

use crate::flow::pattern::{BadPattern, Pattern, Scratch, Work, WorkExhausted};

/// The budget of one evaluation, in steps. A step is an evaluated node, a value, or 32 bytes of a text that are read or
/// copied. Matching takes a step for 8 bytes of the text, and one for every [`MATCHING`] steps of the search.
pub const STEPS: u64 = 200_000;
/// The variable that holds the budget in a condition.
pub const METER: &str = "@meter";

const WEIGH: &str = "@weigh";
const INDEX: &str = "@index";
const MATCHES: &str = "@matches";
/// The maximum length of a regular expression, and of its compiled form, in bytes.
const MAX_PATTERN: usize = 1000;
const MAX_COMPILED: usize = 512 * 1024;
/// The steps for compiling a regular expression, in addition to one per 32 bytes of the compiled form.
const COMPILING: u64 = 5_000;
/// The number of steps of a search that count as one step of the budget.
const MATCHING: u64 = 32;

static TYPE: Type = Type::new_unspecified_type("@meter");

/// The budget of one evaluation.
#[derive(Debug, Clone)]
pub struct Meter(Arc<EvalBudget>);

#[derive(Debug)]
struct EvalBudget {
    left: AtomicU64,
    spent: AtomicBool,
    /// The regular expressions compiled so far.
    patterns: Mutex<Vec<(String, Pattern, Scratch)>>,
}

impl Meter {
    /// Creates a budget of so many steps.
    pub fn new(steps: u64) -> Self {
        Self(Arc::new(EvalBudget {
            left: AtomicU64::new(steps),
            spent: AtomicBool::new(false),
            patterns: Mutex::default(),
        }))
    }

    /// Returns the remaining steps.
    pub fn left(&self) -> u64 {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Whether the budget was exceeded.
    pub fn is_spent(&self) -> bool {
        self.0.spent.load(Ordering::Relaxed)
    }

    fn take(&self, steps: u64) -> Result<(), ExecutionError> {
        self.weigh(steps, None)
    }

    fn weigh(&self, steps: u64, value: Option<&dyn Val>) -> Result<(), ExecutionError> {
        let mut left = self.0.left.load(Ordering::Relaxed);
        let enough = subtract(&mut left, steps) && value.is_none_or(|value| size(value, &mut left));
        self.0.left.store(if enough { left } else { 0 }, Ordering::Relaxed);
        if enough {
            return Ok(());
        }
        self.0.spent.store(true, Ordering::Relaxed);
        Err(failed("the budget is spent"))
    }

    fn matches(&self, text: &str, pattern: &str) -> Result<bool, ExecutionError> {
        let mut patterns = self.0.patterns.lock();
        let at = if let Some(at) = patterns.iter().position(|(known, ..)| known == pattern) {
            at
        } else {
            self.take(COMPILING)?;
            if pattern.len() > MAX_PATTERN {
                return Err(failed(&format!("a regular expression is longer than {MAX_PATTERN} bytes")));
            }
            let compiled = Pattern::new(pattern, MAX_COMPILED).map_err(|error| match error {
                BadPattern::TooLarge => failed(&format!(
                    "`{pattern}` takes more than {MAX_COMPILED} bytes when it is compiled; repeat less in it"
                )),
                BadPattern::Syntax(why) => failed(&format!("`{pattern}` is not a regular expression: {why}")),
            })?;
            self.take(compiled.size() as u64 / 32)?;
            let scratch = compiled.scratch();
            patterns.push((pattern.to_owned(), compiled, scratch));
            patterns.len() - 1
        };
        self.take(text.len() as u64 / 8)?;
        let (_, pattern, scratch) = &mut patterns[at];
        let all = self.0.left.load(Ordering::Relaxed).saturating_mul(MATCHING);
        let mut work = Work::new(all);
        let found = pattern.is_match(scratch, text, &mut work);
        // If the search ran out of steps, take one more, so that the budget counts as exceeded.
        self.take((all - work.left()).div_ceil(MATCHING) + u64::from(found == Err(WorkExhausted)))?;
        found.map_err(|WorkExhausted| wrong())
    }
}

impl Val for Meter {
    fn get_type(&self) -> &Type {
        &TYPE
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl StaticVal for Meter {}

fn subtract(left: &mut u64, steps: u64) -> bool {
    let rest = left.checked_sub(steps);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Takes the size of a value from `left`. Returns `false` if less is left.
fn size(value: &dyn Val, left: &mut u64) -> bool {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return subtract(left, 1 + text.inner().len() as u64 / 32);
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        return subtract(left, 1) && list.inner().iter().all(|item| size(item.as_ref(), left));
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        return subtract(left, 1)
            && map.inner().iter().all(|(key, value)| size(key.inner(), left) && size(value.as_ref(), left));
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        return subtract(left, 1 + bytes.inner().len() as u64 / 32);
    }
    subtract(left, 1)
}

/// Declares the functions that metered conditions call.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let anything = || vec![DYN_TYPE, DYN_TYPE, DYN_TYPE];
    env.add_overload(WEIGH, WEIGH, anything(), weigh)?;
    env.add_overload(INDEX, INDEX, anything(), index)?;
    env.add_overload(MATCHES, MATCHES, anything(), matches)
}

/// Implements `@weigh(value, meter, nodes)`: returns the value if its size and the nodes are within the budget.
fn weigh<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value, meter, nodes] = &args[..] else { return Err(wrong()) };
    let (Some(meter), Some(nodes)) = (meter.downcast_ref::<Meter>(), nodes.downcast_ref::<CelInt>()) else {
        return Err(wrong());
    };
    meter.weigh(nodes.inner().unsigned_abs(), Some(value.as_ref()))?;
    Ok(args.swap_remove(0))
}

/// Implements `@index`: `@weigh` for an index. Refuses fractional numbers here, since the interpreter's error would
/// contain a copy of the whole list.
fn index<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let at = args.first().and_then(|at| at.downcast_ref::<CelDouble>());
    if at.is_some_and(|at| at.inner().fract() != 0.0) {
        return Err(failed("the index of a list must be a whole number"));
    }
    weigh(args)
}

/// Implements `@matches(text, pattern, meter)`.
fn matches<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Ok([text, pattern, meter]) = <[CowVal<'b, 'v>; 3]>::try_from(args) else { return Err(wrong()) };
    let Some(meter) = meter.downcast_ref::<Meter>() else { return Err(wrong()) };
    if let (Some(text), Some(pattern)) = (text.downcast_ref::<CelString<'_>>(), pattern.downcast_ref::<CelString<'_>>())
    {
        meter.matches(text.inner(), pattern.inner()).map(|found| CowVal::owned(CelBool::from(found)))
    } else {
        let types = [&text, &pattern].map(|value| value.get_type().name().to_owned());
        Err(ExecutionError::no_such_overload("matches", types.to_vec()))
    }
}

fn failed(message: &str) -> ExecutionError {
    ExecutionError::FunctionError { function: "condition".to_owned(), message: message.to_owned() }
}

fn wrong() -> ExecutionError {
    failed("it was not prepared")
}

/// Rewrites a condition so that it takes from its budget.
pub fn metered(expr: IdedExpr) -> IdedExpr {
    weighed(expr)
}

/// Wraps an expression so that it is charged for, together with its value. Literals are charged for by the node that
/// contains them.
fn weighed(expr: IdedExpr) -> IdedExpr {
    charged(WEIGH, expr)
}

fn charged(function: &str, expr: IdedExpr) -> IdedExpr {
    let id = expr.id;
    let mut nodes = 0;
    let expr = rewritten(expr, &mut nodes);
    call(id, function, vec![expr, ident(id, METER), integer(id, nodes)])
}

fn call(id: u64, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn ident(id: u64, name: &str) -> IdedExpr {
    IdedExpr { id, expr: Expr::Ident(name.to_owned()) }
}

fn integer(id: u64, value: usize) -> IdedExpr {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(CelInt::from(value))) }
}

/// Charges for everything inside an expression. The nodes of the expression itself are added to `nodes`.
fn rewritten(IdedExpr { id, expr }: IdedExpr, nodes: &mut usize) -> IdedExpr {
    *nodes += 1;
    let expr = match expr {
        Expr::Call(call) => operation(call, nodes, id),
        Expr::Comprehension(each) => Expr::Comprehension(Box::new(comprehension(*each, nodes))),
        Expr::List(list) => Expr::List(elements(list)),
        Expr::Map(map) => Expr::Map(MapExpr { entries: map.entries.into_iter().map(entry).collect() }),
        Expr::Struct(of) => Expr::Struct(StructExpr { entries: of.entries.into_iter().map(entry).collect(), ..of }),
        Expr::Select(select) => {
            Expr::Select(SelectExpr { operand: Box::new(rewritten(*select.operand, nodes)), ..select })
        }
        other @ (Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified) => other,
    };
    IdedExpr { id, expr }
}

fn operation(call: CallExpr, nodes: &mut usize, id: u64) -> Expr {
    let CallExpr { func_name, target, args } = call;
    *nodes += args.len();
    let is_index = func_name == operators::INDEX && target.is_none();
    if func_name == "matches" {
        let args = target.map(|target| *target).into_iter().chain(args).map(weighed);
        let args = args.chain([ident(id, METER)]).collect();
        return Expr::Call(CallExpr { func_name: MATCHES.to_owned(), target: None, args });
    }
    let mut place = 0;
    let args = args.into_iter().map(|arg| {
        place += 1;
        match (is_index, place) {
            (true, 1) => rewritten(arg, nodes),
            (true, _) => charged(INDEX, arg),
            _ => weighed(arg),
        }
    });
    let args = args.collect();
    Expr::Call(CallExpr { func_name, target: target.map(|target| Box::new(weighed(*target))), args })
}

fn elements(list: ListExpr) -> ListExpr {
    ListExpr { elements: list.elements.into_iter().map(weighed).collect(), ..list }
}

fn entry(IdedEntryExpr { id, expr }: IdedEntryExpr) -> IdedEntryExpr {
    let expr = match expr {
        EntryExpr::StructField(mut field) => {
            field.value = weighed(field.value);
            EntryExpr::StructField(field)
        }
        EntryExpr::MapEntry(mut entry) => {
            entry.key = weighed(entry.key);
            entry.value = weighed(entry.value);
            EntryExpr::MapEntry(entry)
        }
    };
    IdedEntryExpr { id, expr }
}

/// Each iteration copies the element, so the range is charged for with its size, and each step by its nodes. The
/// accumulated list of `map` and `filter` is not weighed again at each step: the interpreter appends in place if the
/// step has the shape that the macro generates.
fn comprehension(each: ComprehensionExpr, nodes: &mut usize) -> ComprehensionExpr {
    let loop_cond = match each.loop_cond.expr {
        Expr::Literal(_) => each.loop_cond,
        _ => weighed(each.loop_cond),
    };
    ComprehensionExpr {
        iter_range: weighed(each.iter_range),
        accu_init: rewritten(each.accu_init, nodes),
        loop_cond,
        loop_step: step(each.loop_step, &each.accu_var),
        result: rewritten(each.result, nodes),
        ..each
    }
}

fn step(IdedExpr { id, expr }: IdedExpr, accu: &str) -> IdedExpr {
    let is_accu = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == accu);
    let Expr::Call(CallExpr { func_name, target: None, args }) = expr else {
        return weighed(IdedExpr { id, expr });
    };
    let expr = match (func_name.as_str(), <[IdedExpr; 2]>::try_from(args)) {
        // map: accu + [x]; exists_one: accu + 1
        (operators::ADD, Ok([list, added])) if is_accu(&list) => {
            let added = match added.expr {
                Expr::List(of) => IdedExpr { id: added.id, expr: Expr::List(elements(of)) },
                Expr::Literal(_) => added,
                _ => return weighed(call(id, &func_name, vec![list, added])),
            };
            call(id, &func_name, vec![list, added])
        }
        // all: accu && x; exists: accu || x
        (operators::LOGICAL_AND | operators::LOGICAL_OR, Ok([first, then])) if is_accu(&first) => {
            call(id, &func_name, vec![first, weighed(then)])
        }
        (_, Ok(args)) => weighed(call(id, &func_name, args.into())),
        // filter and exists_one: x ? … : accu
        (_, Err(args)) => match <[IdedExpr; 3]>::try_from(args) {
            Ok([guard, then, otherwise]) if func_name == operators::CONDITIONAL && is_accu(&otherwise) => {
                call(id, &func_name, vec![weighed(guard), step(then, accu), otherwise])
            }
            Ok(args) => weighed(call(id, &func_name, args.into())),
            Err(args) => weighed(call(id, &func_name, args)),
        },
    };
    IdedExpr { id, expr: expr.expr }
}
