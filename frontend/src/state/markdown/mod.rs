//! Markdown as a tree that can only contain text, so that nothing an agent wrote becomes markup. Raw HTML is shown as
//! written, addresses are kept apart from the visible text, and what CommonMark drops (link definitions, titles, cells
//! beyond a table's columns) is shown as its source.

mod reader;
#[cfg(test)]
mod tests;

/// The maximum nesting of blocks and inline marks; anything deeper is shown as its source.
const MAX_DEPTH: usize = 24;
/// The maximum number of blocks, rows, cells and pieces of text that are laid out; the rest is shown as its source.
const MAX_PIECES: usize = 5000;
/// The maximum length of the text that is laid out, in bytes; the rest is shown as its source.
const MAX_BYTES: usize = 200_000;
/// The maximum number of characters that may be markup; the rest is shown as its source. Such a character takes the
/// parser a hundred times as long as a letter, and in prose one character in fifty is one.
const MOST_MARKS: usize = 20_000;

/// Whether a text is probably Markdown: it has several lines, and a heading, list, quotation, fence, link or bold text.
pub fn is_likely(text: &str) -> bool {
    let begins = ["# ", "## ", "### ", "- ", "* ", "> ", "1. ", "```"];
    let marked =
        |line: &str| begins.iter().any(|mark| line.starts_with(mark)) || line.contains("**") || line.contains("](");
    text.contains('\n') && text.lines().any(marked)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading with its level, 1 to 6.
    Heading(u8, Vec<Inline>),
    Paragraph(Vec<Inline>),
    /// A code block: its language, which may be empty, and its text.
    Code(String, String),
    Quote(Vec<Block>),
    /// A list: the first number, or `None` for bullets, and its items.
    List(Option<u64>, Vec<Vec<Block>>),
    /// A table as rows of cells; the first row is the head.
    Table(Vec<Vec<Vec<Inline>>>),
    /// Text that is shown as written: HTML, and what Markdown drops.
    Source(String),
    /// A horizontal line (`---`).
    Rule,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    /// Plain text, without marks.
    Text(String),
    Code(String),
    /// Text that is shown as written: HTML, and what Markdown drops.
    Source(String),
    /// Emphasised text (`*…*`).
    Emphasis(Vec<Inline>),
    /// Strongly emphasised text (`**…**`).
    Strong(Vec<Inline>),
    /// Text that is struck out (`~~…~~`).
    Strike(Vec<Inline>),
    Link(Address, Vec<Inline>),
    Image(Address, String),
    /// The check box of a task list item, and whether it is ticked.
    Task(bool),
    Break,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address as written.
    pub text: String,
    /// Whether a browser may open it: its scheme is `http`, `https` or `mailto`, and nothing precedes the scheme.
    pub may_open: bool,
}

impl Address {
    /// The address as it was written.
    pub fn new(text: &str) -> Self {
        let plain = text.trim() == text && !text.chars().any(|c| c.is_control() || c == '\\');
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let known = scheme.is_some_and(|scheme| ["http", "https", "mailto"].contains(&scheme.as_str()));
        Self { text: text.to_owned(), may_open: plain && known }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The part that is laid out.
    pub blocks: Vec<Block>,
    /// The source of the rest, if the text is too long or has too many parts; otherwise empty.
    pub rest: String,
}

pub fn parse(text: &str) -> Document {
    let is_mark = |byte: &u8| b"[]<>*_`!\\&~|".contains(byte);
    let last_mark = text.bytes().take(MAX_BYTES).enumerate().filter(|(_, byte)| is_mark(byte)).nth(MOST_MARKS);
    let (head, tail) = text.split_at(line_end(text, last_mark.map_or(MAX_BYTES, |(place, _)| place)));
    let (blocks, read) = reader::read(head);
    let rest = head[read..].to_owned() + tail;
    Document { blocks, rest: if rest.trim().is_empty() { String::new() } else { rest } }
}

/// Splits a text into pieces of at most `bytes` bytes, at line ends where lines are short enough.
pub fn pieces(mut text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(line_end(text, bytes));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// The end of the last line within the first `bytes` bytes; the end of the last character if the first line is longer.
fn line_end(text: &str, bytes: usize) -> usize {
    let most = text.floor_char_boundary(bytes);
    if most == text.len() { most } else { text[..most].rfind('\n').map_or(most, |end| end + 1) }
}
