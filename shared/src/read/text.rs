//! How the console reads JSON from text.
//!
//! serde_json reads numbers exactly by arithmetic of its own, with tables that no compression makes smaller; a browser
//! has that already. So on the web this reader takes the place of serde_json's, and the tests hold it against that.

use serde::de::Error as _;
use serde_json::{Error, Map, Number, Result, Value};

/// How deep lists and objects may stand in each other, as with serde_json.
const DEPTH: u8 = 127;

/// Reads a value; nothing may follow it. Errors say the line and the column.
pub fn value(text: &str) -> Result<Value> {
    if cfg!(target_family = "wasm") { whole(text) } else { serde_json::from_str(text) }
}

fn whole(text: &str) -> Result<Value> {
    let mut reader = Reader { text, at: 0 };
    reader.whole().map_err(|what| {
        let before = &text.as_bytes()[..reader.at.min(text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        // What follows the first byte of a character begins none.
        let column =
            before.iter().rev().take_while(|byte| **byte != b'\n').filter(|byte| **byte & 0xc0 != 0x80).count();
        Error::custom(format_args!("{what} at line {line} column {}", column + 1))
    })
}

type Part<T> = std::result::Result<T, &'static str>;

/// A text, and how many of its bytes have been read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn whole(&mut self) -> Part<Value> {
        let value = self.value(DEPTH)?;
        if self.skip().is_some() { Err("nothing may follow") } else { Ok(value) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads this, if it comes next.
    fn eat(&mut self, word: &str) -> bool {
        let comes = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// What comes after white space.
    fn skip(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.peek()
    }

    fn value(&mut self, depth: u8) -> Part<Value> {
        match self.skip() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[') => {
                let mut items = Vec::new();
                self.members(depth, "]", &mut |reader, depth| {
                    items.push(reader.value(depth)?);
                    Ok(())
                })?;
                Ok(Value::Array(items))
            }
            Some(b'{') => {
                let mut fields = Map::new();
                self.members(depth, "}", &mut |reader, depth| {
                    if reader.skip() != Some(b'"') {
                        return Err("expected a key in quotes");
                    }
                    let key = reader.string()?;
                    reader.skip();
                    if !reader.eat(":") {
                        return Err("expected `:`");
                    }
                    fields.insert(key, reader.value(depth)?);
                    Ok(())
                })?;
                Ok(Value::Object(fields))
            }
            _ if self.eat("null") => Ok(Value::Null),
            _ if self.eat("true") => Ok(Value::Bool(true)),
            _ if self.eat("false") => Ok(Value::Bool(false)),
            Some(_) => Err("expected a value"),
            None => Err("expected a value, but the text ends"),
        }
    }

    /// Calls `member` at each member of a list or an object.
    fn members(&mut self, depth: u8, end: &str, member: &mut dyn FnMut(&mut Self, u8) -> Part<()>) -> Part<()> {
        let depth = depth.checked_sub(1).ok_or("nested too deeply")?;
        self.at += 1;
        self.skip();
        if self.eat(end) {
            return Ok(());
        }
        loop {
            member(self, depth)?;
            self.skip();
            if self.eat(end) {
                return Ok(());
            }
            if !self.eat(",") {
                return Err("expected `,` or the end of the list or object");
            }
        }
    }

    fn string(&mut self) -> Part<String> {
        let mut out = String::new();
        self.at += 1;
        let mut start = self.at;
        loop {
            match self.peek() {
                Some(byte @ (b'"' | b'\\')) => {
                    out.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    if byte == b'"' {
                        return Ok(out);
                    }
                    out.push(self.escape()?);
                    start = self.at;
                }
                None => return Err("a text has no end"),
                Some(..b' ') => return Err("a control character in a text must be escaped"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Part<char> {
        let byte = self.peek().unwrap_or_default();
        let simple = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                let high = self.unit()?;
                // A character beyond the first 65,536 is two such escapes.
                let low = if (0xd800..0xdc00).contains(&high) && self.eat("\\u") { self.unit()? } else { 0 };
                return char::decode_utf16([high, low])
                    .next()
                    .and_then(std::result::Result::ok)
                    .ok_or("half a character");
            }
            _ => return Err("no such escape"),
        };
        self.at += 1;
        Ok(char::from(simple))
    }

    /// The four digits of an escape.
    fn unit(&mut self) -> Part<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16)).ok_or("expected four digits")?;
            unit = unit << 4 | u16::try_from(digit).unwrap_or_default();
            self.at += 1;
        }
        Ok(unit)
    }

    fn digits(&mut self) -> Part<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err("expected a digit") } else { Ok(()) }
    }

    fn number(&mut self) -> Part<Value> {
        let start = self.at;
        self.eat("-");
        if !self.eat("0") {
            self.digits()?;
        } else if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err("a number has no zeros in front");
        }
        let whole = self.at;
        if self.eat(".") {
            self.digits()?;
        }
        if self.eat("e") || self.eat("E") {
            if !self.eat("-") {
                self.eat("+");
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        let exact = if whole < self.at || text == "-0" {
            None
        } else if text.starts_with('-') {
            text.parse::<i64>().ok().map(Number::from)
        } else {
            text.parse::<u64>().ok().map(Number::from)
        };
        exact.or_else(|| Number::from_f64(float(text))).map(Value::Number).ok_or("a number is too large")
    }
}

/// The number nearest to what the text says.
#[cfg(target_family = "wasm")]
fn float(text: &str) -> f64 {
    js_sys::Number::parse_float(text)
}

#[cfg(not(target_family = "wasm"))]
fn float(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(text: &str) {
        let expected = serde_json::from_str::<Value>(text);
        match whole(text) {
            Ok(read) => assert_eq!(read.to_string(), expected.expect(text).to_string()),
            Err(error) => assert!(expected.is_err(), "{text}: {error}"),
        }
    }

    #[test]
    fn the_web_reads_json_as_the_server_does() {
        for text in [
            "null",
            " true\r\n\t",
            "false",
            "[]",
            "{}",
            "[ ]",
            "{ }",
            "[1, 2 ,3]",
            r#"{"a": {"b": [null, "c"]}, "": 1}"#,
            r#"{"a": 1, "b": 2, "a": 3}"#,
            "0",
            "-0",
            "-1",
            "12.50",
            "1e3",
            "1E+3",
            "1e-3",
            "0.1",
            "-0.0",
            "2.5e-320",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "1e308",
            "0.1000000000000000055511151231257827",
            "123456789012345678901234567890",
            "5e-324",
            "1e-999",
            r#""é€😀""#,
            r#""\"\\\/\b\f\n\r\tA\u00e9\ud83d\ude00\u0000""#,
            "\"\u{7f}\u{2028}\"",
        ] {
            whole(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            alike(text);
        }
    }

    #[test]
    fn the_web_refuses_what_the_server_refuses() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "True",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{",
            r#"{"a""#,
            r#"{"a":"#,
            r#"{"a":1,}"#,
            "{a:1}",
            r#"{"a" 1}"#,
            "{1:1}",
            "1 1",
            "01",
            "-01",
            "-",
            "+1",
            ".5",
            "5.",
            "1.e3",
            "1e",
            "1e+",
            "1e+-1",
            "0x1",
            "NaN",
            "1e999",
            "-1e999",
            "\"",
            "\"a",
            "\"\n\"",
            "\"\u{1}\"",
            r#""\"#,
            r#""\x""#,
            r#""\u12"#,
            r#""\u12g4""#,
            r#""\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83dA""#,
            r#""\ude00""#,
            "'a'",
            "\u{feff}1",
            "// a\n1",
            "é",
        ] {
            assert!(whole(text).is_err(), "{text}");
            alike(text);
        }
        for depth in [127, 128] {
            alike(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        }
    }

    #[test]
    fn an_error_says_where_it_is() {
        let error = whole("{\n  \"é\": €}").expect_err("not JSON").to_string();
        assert_eq!(error, "expected a value at line 2 column 8");
    }
}
