//! Reading a flow file: YAML 1.2 (core schema) or JSON to a JSON value, with the line and column of every key and value.
//!
//! The following are refused, with their place: duplicate keys, keys that are not strings, tags, NaN and infinity,
//! U+0000, nesting deeper than 64, aliases that inflate the file, more than one document, and files over 1 MiB.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};
use serde_json::Value;
use shared::JsonMap;
use shared::error::{FlowCode, Mistake, pointer};

use super::limits::{MAX_FILE, MAX_MISTAKES, MAX_NESTING, MAX_PATHS, MAX_VALUES};
use super::scalar::core;
use super::value_size::{ValueSize, value_size};

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The number of the line, from 1.
    pub line: u32,
    /// The number of the character in the line, from 1.
    pub column: u32,
}

impl From<&Marker> for Spot {
    fn from(marker: &Marker) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: number(marker.line().max(1)), column: number(marker.col().saturating_add(1)) }
    }
}

/// The positions of a value and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ValueSpots {
    key: Option<Spot>,
    value: Spot,
    scalar: bool,
}

/// A file that was read, with the positions of its values.
#[derive(Debug)]
pub struct SourceText {
    /// The value of the file, without the parts that were refused.
    pub value: Value,
    places: HashMap<String, ValueSpots>,
}

impl SourceText {
    /// Returns the path of the nearest value at or above `path` that exists in the file.
    pub fn nearest<'a>(&self, path: &'a str) -> &'a str {
        let mut path = path;
        while !path.is_empty() && !self.places.contains_key(path) {
            path = path.rfind('/').map_or("", |at| &path[..at]);
        }
        path
    }

    /// Returns the position at which to report a mistake in the value at `path`: that of a scalar itself, or of the key
    /// of a list or object.
    pub fn spot(&self, path: &str) -> Option<Spot> {
        let place = self.places.get(self.nearest(path))?;
        Some(if place.scalar { place.value } else { place.key.unwrap_or(place.value) })
    }

    /// Returns the position of the key of the value at `path`.
    pub fn key_spot(&self, path: &str) -> Option<Spot> {
        let place = self.places.get(self.nearest(path))?;
        Some(place.key.unwrap_or(place.value))
    }
}

/// Creates a mistake at a position.
pub fn mistake_at(spot: Option<Spot>, path: &str, code: FlowCode, message: impl Into<String>) -> Mistake {
    Mistake {
        line: spot.map(|spot| spot.line),
        column: spot.map(|spot| spot.column),
        ..Mistake::new(path, code.as_str(), message)
    }
}

/// Reads a file. The first result is `None` if reading had to stop; the mistakes say why.
pub fn read(text: &str) -> (Option<SourceText>, Vec<Mistake>) {
    let first = Some(Spot { line: 1, column: 1 });
    if text.len() > MAX_FILE {
        let message = format!("the file is larger than {MAX_FILE} bytes; split the flow");
        return (None, vec![mistake_at(first, "", FlowCode::FlowInvalid, message)]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(at) = text.find('\0') {
        let message = "the character U+0000 is not allowed";
        return (None, vec![mistake_at(Some(spot_at(text, at)), "", FlowCode::FlowInvalid, message)]);
    }
    let text = if text.trim_start().starts_with('{') { json_as_yaml(text) } else { Cow::Borrowed(text) };
    let mut reader = Reader {
        end: spot_at(&text, text.trim_end().len()),
        parser: Parser::new_from_str(&text),
        places: HashMap::new(),
        anchors: HashMap::new(),
        values: 0,
        copied: ValueSize::default(),
        paths: 0,
        mistakes: Vec::new(),
    };
    match reader.document() {
        Ok(value) => {
            let Reader { places, mistakes, .. } = reader;
            (Some(SourceText { value, places }), mistakes)
        }
        Err(Stop(mistake)) => {
            let mut mistakes = reader.mistakes;
            mistakes.push(*mistake);
            (None, mistakes)
        }
    }
}

fn spot_at(text: &str, at: usize) -> Spot {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Spot { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}

/// Converts JSON to YAML. They differ only in tabs as indentation, and in characters beyond U+FFFF written as two
/// escapes.
fn json_as_yaml(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') && !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\t', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\t') {
            out.push(' ');
            rest = after;
        } else if let Some((character, after)) = surrogates(rest) {
            out.push_str("\\U");
            out.extend(format!("{:08X}", u32::from(character)).chars());
            rest = after;
        } else {
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes a pair of surrogate escapes (`\ud83d\ude00`). Returns the character and the rest of the text.
fn surrogates(text: &str) -> Option<(char, &str)> {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let character = char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok()?;
    (u32::from(character) > 0xFFFF).then_some((character, &text[12..]))
}

/// The mistake with which reading stops.
struct Stop(Box<Mistake>);

struct Reader<'input> {
    /// The position after the last visible character.
    end: Spot,
    parser: Parser<'input, StrInput<'input>>,
    places: HashMap<String, ValueSpots>,
    anchors: HashMap<usize, Value>,
    values: usize,
    /// The size of all copies: values kept for anchors and repeated by aliases.
    copied: ValueSize,
    /// The total length of the paths of all values, in bytes.
    paths: usize,
    mistakes: Vec<Mistake>,
}

impl<'input> Reader<'input> {
    fn document(&mut self) -> Result<Value, Stop> {
        let mut value = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => break,
                _ if value.is_some() => {
                    return Err(stop(&span, "", "a flow file has one document; remove everything after `---`"));
                }
                event => value = Some(self.value(event, &span, "", None, 0)?),
            }
        }
        value.ok_or_else(|| stop(&Span::default(), "", "the file is empty; a flow needs at least `id` and `nodes`"))
    }

    fn next(&mut self) -> Result<(Event<'input>, Span), Stop> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                // The parser reports a premature end on the line after it.
                let spot = Spot::from(error.marker());
                let spot = if spot.line > self.end.line { self.end } else { spot };
                let message = format!("the file cannot be read here: {}", error.info());
                Err(Stop(Box::new(mistake_at(Some(spot), "", FlowCode::FlowInvalid, message))))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn value(
        &mut self,
        event: Event<'input>,
        span: &Span,
        path: &str,
        key: Option<Spot>,
        depth: usize,
    ) -> Result<Value, Stop> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(stop(span, path, format!("the file has more than {MAX_VALUES} values, including aliases")));
        }
        if depth > MAX_NESTING {
            return Err(stop(span, path, format!("lists and objects are nested deeper than {MAX_NESTING}")));
        }
        self.paths += path.len();
        if self.paths > MAX_PATHS {
            return Err(stop(span, "", "the keys are too long for so many values below them; shorten the keys"));
        }
        if self.mistakes.len() > MAX_MISTAKES {
            return Err(stop(span, path, "there are more errors; correct these first"));
        }
        let scalar = matches!(event, Event::Scalar(..));
        self.places.insert(path.to_owned(), ValueSpots { key, value: Spot::from(&span.start), scalar });
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span, path);
                (anchor, self.scalar(text, style, span, path))
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), span, path);
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        break;
                    }
                    items.push(self.value(event, &span, &format!("{path}/{}", items.len()), None, depth + 1)?);
                }
                (anchor, Value::Array(items))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), span, path);
                (anchor, Value::Object(self.mapping(path, depth)?))
            }
            Event::Alias(anchor) => return self.alias(anchor, span, path, depth),
            _ => return Err(stop(span, path, "the file ends where a value is expected")),
        };
        self.keep(anchor, &value, span, path)?;
        Ok(value)
    }

    fn mapping(&mut self, path: &str, depth: usize) -> Result<JsonMap, Stop> {
        let mut map = JsonMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(map);
            }
            let spot = Spot::from(&span.start);
            let name = match event {
                Event::Scalar(text, style, _, tag) => {
                    self.refuse_tag(tag.is_some(), &span, path);
                    let plain = style == ScalarStyle::Plain && !matches!(core(&text), Ok(Value::String(_)));
                    if plain {
                        let shown = if text.is_empty() { "nothing" } else { &text };
                        self.mistake(&span, path, format!("a key must be text; write \"{shown}\" in quotes"));
                        None
                    } else {
                        Some(text.into_owned())
                    }
                }
                event => {
                    self.mistake(&span, path, "a key must be text, not a list, an object or an alias".to_owned());
                    self.skip(event)?;
                    None
                }
            };
            let (event, span) = self.next()?;
            match name {
                Some(name) if !map.contains_key(&name) => {
                    let below = format!("{path}{}", pointer([&name]));
                    let value = self.value(event, &span, &below, Some(spot), depth + 1)?;
                    map.insert(name, value);
                }
                doubled => {
                    if let Some(name) = doubled {
                        let below = format!("{path}{}", pointer([&name]));
                        let first = self.places.get(&below).and_then(|place| place.key);
                        let first = first.map_or(String::new(), |first| format!(" (first on line {})", first.line));
                        self.mistakes.push(mistake_at(
                            Some(spot),
                            &below,
                            FlowCode::FlowInvalid,
                            format!("`{name}` appears twice{first}; remove one of them"),
                        ));
                    }
                    self.skip(event)?;
                }
            }
        }
    }

    fn alias(&mut self, anchor: usize, span: &Span, path: &str, depth: usize) -> Result<Value, Stop> {
        let Some(value) = self.anchors.get(&anchor) else {
            return Err(stop(span, path, "an alias cannot be inside the value that it names"));
        };
        let value = value.clone();
        let nesting = self.copy(&value, span, path)?;
        if depth + nesting > MAX_NESTING {
            return Err(stop(span, path, format!("lists and objects are nested deeper than {MAX_NESTING}")));
        }
        Ok(value)
    }

    /// Counts a copy of a value, which must fit the limits together with earlier copies. Returns how deep it is nested.
    fn copy(&mut self, value: &Value, span: &Span, path: &str) -> Result<usize, Stop> {
        let extent = value_size(value);
        self.copied.values += extent.values;
        self.copied.bytes += extent.bytes;
        if self.values + self.copied.values > MAX_VALUES {
            return Err(stop(span, path, format!("the file has more than {MAX_VALUES} values, including aliases")));
        }
        if self.copied.bytes > MAX_FILE {
            let message = format!("the file is larger than {MAX_FILE} bytes, including aliases; write or repeat less");
            return Err(stop(span, path, message));
        }
        Ok(extent.nesting)
    }

    /// Reads a value up to its end, without keeping it.
    fn skip(&mut self, event: Event<'input>) -> Result<(), Stop> {
        let mut open = 0_usize;
        let mut event = event;
        loop {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => open += 1,
                Event::SequenceEnd | Event::MappingEnd => open = open.saturating_sub(1),
                Event::StreamEnd => return Ok(()),
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
            event = self.next()?.0;
        }
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, span: &Span, path: &str) -> Value {
        if text.contains('\0') {
            self.mistake(span, path, "the character U+0000 is not allowed".to_owned());
            return Value::String(text.replace('\0', ""));
        }
        if style != ScalarStyle::Plain {
            return Value::String(text.into_owned());
        }
        core(&text).unwrap_or_else(|message| {
            self.mistake(span, path, message);
            Value::Null
        })
    }

    fn keep(&mut self, anchor: usize, value: &Value, span: &Span, path: &str) -> Result<(), Stop> {
        if anchor != 0 {
            self.copy(value, span, path)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    fn refuse_tag(&mut self, tagged: bool, span: &Span, path: &str) {
        if tagged {
            self.mistake(span, path, "tags such as `!name` are not allowed in a flow; remove it".to_owned());
        }
    }

    fn mistake(&mut self, span: &Span, path: &str, message: String) {
        self.mistakes.push(mistake_at(Some(Spot::from(&span.start)), path, FlowCode::FlowInvalid, message));
    }
}

fn stop(span: &Span, path: &str, message: impl Into<String>) -> Stop {
    Stop(Box::new(mistake_at(Some(Spot::from(&span.start)), path, FlowCode::FlowInvalid, message)))
}
