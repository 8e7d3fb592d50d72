//! Markdown as a tree that can only be text, so that nothing an agent wrote is ever markup: raw HTML is shown as it was
//! written, addresses are kept apart from what is shown, and what CommonMark leaves out of the page (definitions of
//! links, titles, cells beyond a table's columns) is shown as its source. Imports pulldown-cmark only.

mod reader;
#[cfg(test)]
mod tests;

/// How deep blocks and marks are nested; what is deeper is shown as its source.
const DEEPEST: usize = 24;
/// How many blocks, rows, cells and pieces of text are laid out; what follows is shown as its source.
const MOST: usize = 5000;
/// How much of a text is laid out, in bytes; what follows is shown as its source.
const LONGEST: usize = 200_000;
/// How many characters that may be markup are parsed; what follows is shown as its source. Such a character takes the
/// parser a hundred times as long as a letter, and prose has one in fifty.
const MOST_MARKS: usize = 20_000;

/// Whether a text has a line that only Markdown writes so: a heading, a list, a quotation, a fence, or emphasis.
pub fn is_likely(text: &str) -> bool {
    let begins = ["# ", "## ", "### ", "- ", "* ", "> ", "1. ", "```"];
    let marked =
        |line: &str| begins.iter().any(|mark| line.starts_with(mark)) || line.contains("**") || line.contains("](");
    text.contains('\n') && text.lines().any(marked)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A headline of this level, 1 to 6.
    Heading(u8, Vec<Inline>),
    Paragraph(Vec<Inline>),
    /// Code, and its language.
    Code(String, String),
    Quote(Vec<Block>),
    /// A list; numbered from there, or not.
    List(Option<u64>, Vec<Vec<Block>>),
    /// A table: its rows, the first being the head.
    Table(Vec<Vec<Vec<Inline>>>),
    /// To be shown as it was written: HTML, and what Markdown leaves out.
    Source(String),
    /// A horizontal line (`---`).
    Rule,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    /// Plain text, without marks.
    Text(String),
    /// A code span, shown in a fixed width.
    Code(String),
    /// To be shown as it was written: HTML, and what Markdown leaves out.
    Source(String),
    /// Emphasised text (`*…*`), shown in italics.
    Emphasis(Vec<Inline>),
    /// Strongly emphasised text.
    Strong(Vec<Inline>),
    /// Text that is struck out (`~~…~~`).
    Strike(Vec<Inline>),
    /// A link, and the text that it has.
    Link(Address, Vec<Inline>),
    /// A picture, and what stands for it.
    Image(Address, String),
    /// A task of a list, done or not.
    Task(bool),
    /// The line ends.
    Break,
}

/// Where a link or a picture leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// As it was written.
    pub text: String,
    /// Whether a browser may open it: `http`, `https` and `mailto`, with nothing else in front.
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

/// A text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What is laid out.
    pub blocks: Vec<Block>,
    /// What follows it, as it was written: the text is too long, or has too many parts. Mostly empty.
    pub rest: String,
}

/// Reads a text.
pub fn parse(text: &str) -> Document {
    let is_mark = |byte: &u8| b"[]<>*_`!\\&~|".contains(byte);
    let last_mark = text.bytes().take(LONGEST).enumerate().filter(|(_, byte)| is_mark(byte)).nth(MOST_MARKS);
    let (head, tail) = text.split_at(line_end(text, last_mark.map_or(LONGEST, |(place, _)| place)));
    let (blocks, read) = reader::read(head);
    let rest = head[read..].to_owned() + tail;
    Document { blocks, rest: if rest.trim().is_empty() { String::new() } else { rest } }
}

/// A text in pieces of so many bytes at most, each of whole lines where these are shorter.
pub fn pieces(mut text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(line_end(text, bytes));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// The end of the last line within so many bytes; of a longer line, that of its last character there.
fn line_end(text: &str, bytes: usize) -> usize {
    let most = text.floor_char_boundary(bytes);
    if most == text.len() { most } else { text[..most].rfind('\n').map_or(most, |end| end + 1) }
}
