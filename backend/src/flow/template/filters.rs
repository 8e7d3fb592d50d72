//! Filters and functions whose results can be larger than their arguments: each takes from the budget what it will
//! create, before it does so.

use indexmap::IndexMap;
use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, functions};

use super::meter::{settled, take, weigh};

/// The maximum width or count in an argument of a filter.
const WIDEST: u32 = 1000;

/// Replaces the built-in filters and functions by bounded ones.
pub fn declare(environment: &mut Environment<'_>) {
    environment.remove_global("debug");
    let cost_of_values = |state: &mut State<'_, '_>, args: &[Value]| weigh_all(state, args, 1);
    let functions =
        [("dict", Value::from_function(functions::dict)), ("namespace", Value::from_function(functions::namespace))];
    for (name, inner) in functions {
        environment.add_function(name, bounded(inner, cost_of_values));
    }
    let filters: [(&str, Value, Cost); 9] = [
        ("join", Value::from_function(filters::join), |state, args| {
            let items = args.first().map_or(0, length);
            take(state, items.saturating_mul(args.get(1).map_or(0, bytes)))
        }),
        ("replace", Value::from_function(filters::replace), |state, args| {
            let [text, from, to] = [0, 1, 2].map(|at| args.get(at).map_or(0, bytes));
            take(state, (text / from.max(1) + 1).saturating_mul(to))
        }),
        ("trim", Value::from_function(filters::trim), |state, args| {
            let [text, chars] = [0, 1].map(|at| args.get(at).map_or(0, bytes));
            take(state, text.saturating_mul(chars))
        }),
        ("indent", Value::from_function(filters::indent), |state, args| {
            let lines = args.first().and_then(Value::as_str).map_or(0, |text| text.matches('\n').count() as u64 + 1);
            take(state, lines.saturating_mul(widest(args)?.max(4)))
        }),
        ("tojson", Value::from_function(filters::tojson), |state, args| {
            let times = widest(args)?.saturating_add(4);
            weigh_all(state, args, times)
        }),
        ("batch", Value::from_function(filters::batch), |state, args| take(state, widest(args)?.saturating_mul(32))),
        ("slice", Value::from_function(filters::slice), |state, args| take(state, widest(args)?.saturating_mul(32))),
        ("pprint", Value::from_function(filters::pprint), |state, args| weigh_all(state, args, 16)),
        ("format", Value::from_function(filters::format), |state, args| {
            let format = args.first().and_then(Value::as_str).unwrap_or_default();
            let numbers = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let is_wide = |digits: &str| digits.parse::<u32>().is_ok_and(|width| width <= WIDEST);
            if format.contains('*') || !numbers.clone().all(is_wide) {
                return Err(too_wide());
            }
            take(state, numbers.count() as u64 * u64::from(WIDEST))
        }),
    ];
    for (name, inner, cost) in filters {
        environment.add_filter(name, bounded(inner, cost));
    }
    environment.add_filter("chain", chain);
}

/// Implements `chain`, but returns one list or map: the lazy result would walk through all its parts at each access.
fn chain(state: &mut State<'_, '_>, value: Value, others: Rest<Value>) -> Result<Value, Error> {
    let chained = filters::chain(state, value, others)?;
    match chained.kind() {
        ValueKind::Seq => settled(state, &chained),
        ValueKind::Map => {
            let mut members = IndexMap::new();
            for key in chained.try_iter()? {
                take(state, 64)?;
                let member = chained.get_item(&key)?;
                members.insert(key, member);
            }
            Ok(Value::from_object(members))
        }
        _ => Ok(chained),
    }
}

type Cost = fn(&mut State<'_, '_>, &[Value]) -> Result<(), Error>;

fn bounded(
    inner: Value,
    cost: Cost,
) -> impl Fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Value, Error> + Send + Sync + 'static {
    move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        cost(state, &args)?;
        inner.call(state, &args)
    }
}

fn weigh_all(state: &mut State<'_, '_>, args: &[Value], times: u64) -> Result<(), Error> {
    args.iter().try_for_each(|value| weigh(state, value, times).map(|_| ()))
}

fn bytes(value: &Value) -> u64 {
    value.as_str().map_or(32, str::len) as u64
}

fn length(value: &Value) -> u64 {
    value.len().unwrap_or(0) as u64
}

/// Returns the largest number among the arguments after the first, including keyword arguments. Whole decimal numbers
/// are accepted as integers by the filters, so they count; fractions and negative numbers do not. Fails if the number
/// is larger than [`WIDEST`].
fn widest(args: &[Value]) -> Result<u64, Error> {
    let number = |value: &Value| match (i64::try_from(value.clone()), f64::try_from(value.clone())) {
        (Ok(integer), _) => u64::try_from(integer).unwrap_or(0),
        (Err(_), Ok(number)) if number < f64::from(WIDEST) => 0,
        (Err(_), Ok(_)) => u64::MAX,
        (Err(_), Err(_)) => 0,
    };
    let mut widest = 0;
    for arg in args.iter().skip(1) {
        widest = widest.max(number(arg));
        if arg.is_kwargs() {
            for name in arg.try_iter()? {
                widest = widest.max(number(&arg.get_item(&name)?));
            }
        }
    }
    if widest > u64::from(WIDEST) { Err(too_wide()) } else { Ok(widest) }
}

fn too_wide() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a width or count must be a literal of at most {WIDEST}"))
}
