//! The budget of one rendering: how much work and memory it may take. The fuel of the template engine counts
//! instructions only, not the size of the values that they work on.
//!
//! A compiled template is rewritten before it runs: before every operator, filter and test whose cost grows with its
//! operands, a call takes their sizes from the budget and puts the values back. Plain text goes through the formatter,
//! which counts bytes, as every rendered value does. So no value is copied or compared without being paid for.
//! Functions whose results are larger than their arguments are bounded in [`super::filters`]. Names with `@` cannot be
//! written in a template.

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::flow::limits::MAX_NESTING;
use crate::flow::work_limit;

/// The budget of one rendering, in bytes that are read, copied or rendered.
pub const WORK: u64 = 8 * 1024 * 1024;
/// The cost of a value in addition to the bytes of a text.
const VALUE: u64 = 32;
/// The assumed number of times that sorting reads each value.
const SORTING: u64 = 8;

const WEIGH: &str = "@weigh";
const GLANCE: &str = "@glance";
const SORT: &str = "@sort";
const EACH: &str = "@each";
const NUMBERS: &str = "@numbers";
const ITEM: &str = "@item";
const CHANGED: &str = "@changed";
const SLICE: &str = "@slice";
const SETTLE: &str = "@settle";
const JOINED: &str = "@joined";
const RESULT: &str = "@result";

/// The remaining budget, kept in the state of a rendering.
struct Left {
    /// The bytes that are left.
    bytes: u64,
    /// The instructions that were counted as work.
    counted: u64,
}

/// Returns the remaining budget, which is whole at first.
fn left<'s>(state: &'s mut State<'_, '_>) -> &'s mut Left {
    state.get_or_insert_extension(Left { bytes: WORK, counted: 0 })
}

/// Counts the instructions since the last call as work: if the rendering fails, its state is gone.
pub fn count_instructions(state: &mut State<'_, '_>) {
    let used = state.fuel_levels().map_or(0, |(used, _)| used);
    let left = left(state);
    work_limit::count(used.saturating_sub(left.counted) * work_limit::PER_STEP);
    left.counted = left.counted.max(used);
}

/// Takes from the budget of a rendering. Fails if less is left.
pub fn take(state: &mut State<'_, '_>, cost: u64) -> Result<(), Error> {
    count_instructions(state);
    work_limit::count(cost);
    let left = left(state);
    if let Some(rest) = left.bytes.checked_sub(cost) {
        left.bytes = rest;
        Ok(())
    } else {
        left.bytes = 0;
        Err(spent())
    }
}

fn spent() -> Error {
    let message = format!("it takes more than {WORK} bytes of work; use fewer or smaller values");
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Takes the size of a value from the budget, `times` times. Returns the size.
pub fn weigh(state: &mut State<'_, '_>, value: &Value, times: u64) -> Result<u64, Error> {
    let all = left(state).bytes / times.max(1);
    let mut left = all;
    let outcome = size(value, 0, &mut left);
    take(state, (all - left).saturating_mul(times))?;
    outcome.map(|()| all - left)
}

fn size(value: &Value, depth: usize, left: &mut u64) -> Result<(), Error> {
    let own = VALUE + value.as_str().map_or(0, |text| text.len() as u64);
    *left = left.checked_sub(own).ok_or_else(spent)?;
    if depth > MAX_NESTING {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("a value is nested deeper than {MAX_NESTING}")));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.try_for_each(|item| size(&item, depth + 1, left)),
        ValueKind::Map => value.try_iter()?.try_for_each(|key| {
            size(&key, depth + 1, left)?;
            size(&value.get_item(&key)?, depth + 1, left)
        }),
        _ => Ok(()),
    }
}

/// Declares the functions that rewritten templates call.
pub fn declare(environment: &mut Environment<'_>) {
    type Args = Rest<ValueOrKwargs>;
    type Put = Result<Value, Error>;
    environment.add_function(WEIGH, |state: &mut State<'_, '_>, args: Args| -> Put { weighed(state, args, 1) });
    environment.add_function(SORT, |state: &mut State<'_, '_>, args: Args| -> Put { weighed(state, args, SORTING) });
    environment.add_function(GLANCE, |state: &mut State<'_, '_>, args: Args| -> Put {
        let args = args.into_values();
        let texts = args.iter().filter_map(Value::as_str).map(|text| text.len() as u64).sum::<u64>();
        take(state, VALUE + texts)?;
        Ok(put_back(args))
    });
    environment.add_function(EACH, |state: &mut State<'_, '_>, args: Args| -> Put {
        let args = args.into_values();
        let items = args.first().and_then(Value::len).unwrap_or(0) as u64;
        for (place, value) in args.iter().enumerate() {
            weigh(state, value, if place == 0 { 1 } else { items.max(1) })?;
        }
        Ok(put_back(args))
    });
    environment.add_function(NUMBERS, |args: Args| -> Put {
        let args = args.into_values();
        let is_many = |value: &Value| matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Iterable);
        if args.iter().any(is_many) {
            let message = "`*` is for numbers; it does not repeat a text or a list";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        Ok(put_back(args))
    });
    environment.add_function(ITEM, |state: &mut State<'_, '_>, args: Args| -> Put {
        let args = args.into_values();
        if let [of, key] = &args[..] {
            weigh(state, key, 1)?;
            take(state, passed(of, key))?;
        }
        Ok(put_back(args))
    });
    environment.add_function(SLICE, |state: &mut State<'_, '_>, args: Args| -> Put {
        let mut args = args.into_values();
        for value in &args {
            weigh(state, value, 1)?;
        }
        // The engine steps back from the last item even of an empty list, and panics. So an empty list is sliced
        // without a step.
        if args[0].try_iter().is_ok_and(|mut items| items.next().is_none()) {
            args[3] = Value::from(());
        }
        Ok(put_back(args))
    });
    environment.add_function(CHANGED, |state: &mut State<'_, '_>, args: Args| -> Put {
        let args = args.into_values();
        for value in args.iter().skip(1) {
            weigh(state, value, 1)?;
        }
        Ok(put_back(args))
    });
    // The result is copied once more, with every value that occurs in it several times.
    environment.add_function(RESULT, |args: Args| -> Put {
        let value = args.into_values().pop().unwrap_or_default();
        let large = |_| {
            let message =
                format!("it renders to more than {WORK} bytes of values and text, each counted wherever it stands");
            Error::new(ErrorKind::InvalidOperation, message)
        };
        size(&value, 0, &mut { WORK }).map_err(large)?;
        Ok(value)
    });
    environment.add_function(SETTLE, |state: &mut State<'_, '_>, args: Args| -> Put {
        let value = args.into_values().pop().unwrap_or_default();
        if value.kind() == ValueKind::Iterable {
            return settled(state, &value);
        }
        take(state, VALUE + value.as_str().map_or(0, |text| text.len() as u64))?;
        Ok(value)
    });
    // The result has been paid for. If it stayed lazy, each access would walk through all its parts.
    environment.add_function(JOINED, |state: &mut State<'_, '_>, args: Args| -> Put {
        let value = args.into_values().pop().unwrap_or_default();
        if value.kind() == ValueKind::Iterable { settled(state, &value) } else { Ok(value) }
    });
}

/// Collects the items of an iterable as a list.
pub fn settled(state: &mut State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()? {
        take(state, VALUE)?;
        items.push(item);
    }
    Ok(Value::from(items))
}

/// Returns the cost of reaching an item by its index: texts and iterables have no random access.
fn passed(of: &Value, key: &Value) -> u64 {
    let Ok(at) = i64::try_from(key.clone()) else { return 0 };
    let up_to = |all: u64, each: u64| match u64::try_from(at) {
        Ok(at) => all.min(at.saturating_add(1).saturating_mul(each)),
        Err(_) => all,
    };
    match (of.as_str(), of.kind()) {
        (Some(text), _) => up_to(text.len() as u64, 4),
        (None, ValueKind::Iterable) => up_to(of.len().map_or(WORK, |items| items as u64 * VALUE), VALUE),
        _ => 0,
    }
}

fn weighed(state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>, times: u64) -> Result<Value, Error> {
    let args = args.into_values();
    for value in &args {
        weigh(state, value, times)?;
    }
    Ok(put_back(args))
}

/// Returns the arguments in the order in which [`Instruction::UnpackList`] restores them.
fn put_back(mut args: Vec<Value>) -> Value {
    args.reverse();
    Value::from(args)
}

/// Rewrites a template so that it takes from its budget. `is_value`: the template is one expression, whose value is the
/// result instead of a text.
pub fn metered<'s>(code: &Instructions<'s>, is_value: bool) -> Instructions<'s> {
    let all: Vec<&Instruction<'s>> = (0..).map_while(|at| code.get(at)).collect();
    let is_result = is_value && matches!(all.last(), Some(Instruction::Emit));
    let shown = if is_result { all.len() - 1 } else { all.len() };
    let mut places = Vec::with_capacity(all.len() + 1);
    let mut next = 0_u32;
    for instruction in &all {
        places.push(next);
        next += 1 + if check(instruction).is_some() { 2 } else { 0 } + u32::from(has_second(instruction));
    }
    places.push(next);
    let moved = |to: u32| places.get(to as usize).copied().unwrap_or(next);
    let mut metered = Instructions::new(code.name(), code.source());
    for (at, instruction) in (0_u32..).zip(&all[..shown]) {
        let line = code.get_line(at).and_then(|line| u16::try_from(line).ok()).unwrap_or(u16::MAX);
        let mut add = |instruction| metered.add_with_line(instruction, line);
        if let Some((function, count)) = check(instruction) {
            add(Instruction::CallFunction(function, Some(count)));
            add(Instruction::UnpackList(usize::from(count)));
        }
        add(match instruction {
            Instruction::EmitRaw(text) => Instruction::LoadConst(Value::from(*text)),
            Instruction::Iterate(to) => Instruction::Iterate(moved(*to)),
            Instruction::Jump(to) => Instruction::Jump(moved(*to)),
            Instruction::JumpIfFalse(to) => Instruction::JumpIfFalse(moved(*to)),
            Instruction::JumpIfFalseOrPop(to) => Instruction::JumpIfFalseOrPop(moved(*to)),
            Instruction::JumpIfTrueOrPop(to) => Instruction::JumpIfTrueOrPop(moved(*to)),
            Instruction::BuildMacro(name, to, flags) => Instruction::BuildMacro(name, moved(*to), *flags),
            other => (*other).clone(),
        });
        match instruction {
            Instruction::EmitRaw(_) => {
                add(Instruction::Emit);
            }
            Instruction::ApplyFilter(..) => {
                add(Instruction::CallFunction(SETTLE, Some(1)));
            }
            Instruction::Add | Instruction::Slice => {
                add(Instruction::CallFunction(JOINED, Some(1)));
            }
            _ => {}
        }
    }
    if is_result {
        metered.add(Instruction::CallFunction(RESULT, Some(1)));
    }
    metered
}

/// Whether an instruction gets an additional one after it.
fn has_second(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction,
        Instruction::EmitRaw(_) | Instruction::ApplyFilter(..) | Instruction::Add | Instruction::Slice
    )
}

/// Returns the function that charges for an instruction's operands, and their number. `None` if the instruction is
/// free.
fn check(instruction: &Instruction<'_>) -> Option<(&'static str, u16)> {
    Some(match instruction {
        Instruction::Add
        | Instruction::StringConcat
        | Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => (WEIGH, 2),
        Instruction::Mul => (NUMBERS, 2),
        Instruction::GetItem | Instruction::ApplyFilter("attr", Some(2), _) => (ITEM, 2),
        Instruction::Slice => (SLICE, 4),
        // `loop.changed` compares its arguments.
        Instruction::CallMethod(_, Some(count)) => (CHANGED, *count),
        Instruction::BuildMap(pairs) if *pairs > 0 => (WEIGH, u16::try_from(pairs * 2).ok()?),
        Instruction::ApplyFilter(name, Some(count), _) => match *name {
            "length" | "count" | "first" | "default" | "d" | "int" | "float" | "abs" | "round" | "bool" => {
                (GLANCE, *count)
            }
            "sort" | "dictsort" | "unique" | "groupby" => (SORT, *count),
            "map" | "select" | "reject" | "selectattr" | "rejectattr" => (EACH, *count),
            _ => (WEIGH, *count),
        },
        Instruction::PerformTest(name, Some(count), _) => match *name {
            "defined" | "undefined" | "none" | "boolean" | "number" | "integer" | "int" | "float" | "string"
            | "sequence" | "iterable" | "mapping" | "true" | "false" | "odd" | "even" => return None,
            _ => (WEIGH, *count),
        },
        _ => return None,
    })
}
