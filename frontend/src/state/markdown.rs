//! Markdown as a tree that can only be text, so that nothing an agent wrote is ever markup: raw HTML is shown as it
//! was written, addresses are kept apart from what is shown.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// How deep blocks are nested before the rest is left flat.
const DEEPEST: usize = 24;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A headline of this level, 1 to 6.
    Heading(u8, Vec<Inline>),
    /// A paragraph.
    Paragraph(Vec<Inline>),
    /// Code, and its language.
    Code(String, String),
    /// Something quoted.
    Quote(Vec<Block>),
    /// A list; numbered from there, or not.
    List(Option<u64>, Vec<Vec<Block>>),
    /// A table: its rows, the first being the head.
    Table(Vec<Vec<Vec<Inline>>>),
    /// HTML, to be shown as it was written.
    Html(String),
    /// A line.
    Rule,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    /// Text.
    Text(String),
    /// Code.
    Code(String),
    /// HTML, to be shown as it was written.
    Html(String),
    /// Emphasis.
    Emphasis(Vec<Inline>),
    /// Strong emphasis.
    Strong(Vec<Inline>),
    /// Struck out.
    Strike(Vec<Inline>),
    /// A link.
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

/// The blocks of a text.
pub fn parse(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader { events: Parser::new_ext(text, options), depth: 0 };
    reader.blocks()
}

struct Reader<I> {
    events: I,
    depth: usize,
}

impl<'a, I: Iterator<Item = Event<'a>>> Reader<I> {
    /// The blocks up to the end of the block around them. Text without a paragraph around it, as in tight lists, makes
    /// one.
    fn blocks(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut loose = Vec::new();
        self.depth += 1;
        while let Some(event) = self.events.next() {
            let block = match event {
                Event::End(_) => break,
                Event::Start(Tag::Paragraph) => Block::Paragraph(self.inlines()),
                Event::Start(Tag::Heading { level, .. }) => Block::Heading(level as u8, self.inlines()),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    Block::Code(language, self.text())
                }
                Event::Start(Tag::HtmlBlock) => Block::Html(self.text()),
                Event::Start(Tag::BlockQuote(_)) if self.depth < DEEPEST => Block::Quote(self.blocks()),
                Event::Start(Tag::List(start)) if self.depth < DEEPEST => Block::List(start, self.items()),
                Event::Start(Tag::Table(_)) => Block::Table(self.rows()),
                Event::Start(tag) if is_block(&tag) => Block::Paragraph(vec![Inline::Text(self.text())]),
                Event::Rule => Block::Rule,
                Event::Html(html) => Block::Html(html.to_string()),
                other => {
                    self.inline(other, &mut loose);
                    continue;
                }
            };
            if !loose.is_empty() {
                blocks.push(Block::Paragraph(std::mem::take(&mut loose)));
            }
            blocks.push(block);
        }
        self.depth -= 1;
        if !loose.is_empty() {
            blocks.push(Block::Paragraph(loose));
        }
        blocks
    }

    fn items(&mut self) -> Vec<Vec<Block>> {
        let mut items = Vec::new();
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(_) => items.push(self.blocks()),
                Event::End(_) => break,
                _ => {}
            }
        }
        items
    }

    fn rows(&mut self) -> Vec<Vec<Vec<Inline>>> {
        let mut rows = Vec::new();
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => {
                    let cell = self.inlines();
                    if let Some(row) = rows.last_mut() {
                        row.push(cell);
                    }
                }
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        rows
    }

    fn inlines(&mut self) -> Vec<Inline> {
        let mut out = Vec::new();
        while let Some(event) = self.events.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            self.inline(event, &mut out);
        }
        out
    }

    fn inline(&mut self, event: Event<'a>, out: &mut Vec<Inline>) {
        let inline = match event {
            Event::Text(text) => Inline::Text(text.to_string()),
            Event::Code(text) => Inline::Code(text.to_string()),
            Event::InlineHtml(html) | Event::Html(html) => Inline::Html(html.to_string()),
            Event::SoftBreak => Inline::Text(" ".into()),
            Event::HardBreak => Inline::Break,
            Event::TaskListMarker(done) => Inline::Task(done),
            Event::Start(Tag::Emphasis) => Inline::Emphasis(self.inlines()),
            Event::Start(Tag::Strong) => Inline::Strong(self.inlines()),
            Event::Start(Tag::Strikethrough) => Inline::Strike(self.inlines()),
            Event::Start(Tag::Link { dest_url, .. }) => Inline::Link(Address::new(&dest_url), self.inlines()),
            Event::Start(Tag::Image { dest_url, .. }) => Inline::Image(Address::new(&dest_url), self.text()),
            Event::Start(_) => Inline::Text(self.text()),
            _ => return,
        };
        match (out.last_mut(), inline) {
            (Some(Inline::Text(last)), Inline::Text(text)) => last.push_str(&text),
            (_, inline) => out.push(inline),
        }
    }

    /// All text up to the end of what has just begun.
    fn text(&mut self) -> String {
        let mut out = String::new();
        let mut depth = 1;
        for event in self.events.by_ref() {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                    out.push_str(&text);
                }
                Event::SoftBreak | Event::HardBreak => out.push('\n'),
                _ => {}
            }
        }
        out
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Inline {
        Inline::Text(text.into())
    }

    #[test]
    fn html_stays_visible_and_is_never_markup() {
        let blocks = parse("Hi <b onclick=x>you</b>\n\n<script>alert(1)</script>\n\n<!-- and ship it -->");
        assert_eq!(
            blocks,
            [
                Block::Paragraph(vec![
                    text("Hi "),
                    Inline::Html("<b onclick=x>".into()),
                    text("you"),
                    Inline::Html("</b>".into())
                ]),
                Block::Html("<script>alert(1)</script>\n".into()),
                Block::Html("<!-- and ship it -->".into()),
            ]
        );
    }

    #[test]
    fn only_plain_web_and_mail_addresses_may_be_opened() {
        for (address, may_open) in [
            ("https://example.com/a", true),
            ("mailto:a@example.com", true),
            ("javascript:alert(1)", false),
            ("JaVaScRiPt:alert(1)", false),
            ("data:text/html,x", false),
            ("//example.com", false),
            ("/runs", false),
            ("https:\\\\example.com", false),
        ] {
            assert_eq!(Address::new(address).may_open, may_open, "{address}");
        }
    }

    #[test]
    fn lists_tables_and_code_keep_their_shape() {
        let blocks = parse("1. one\n2. **two**\n\n| a |\n|---|\n| b |\n\n```rust\nlet x;\n```\n");
        let paragraph = |inline| vec![Block::Paragraph(vec![inline])];
        assert_eq!(
            blocks,
            [
                Block::List(Some(1), vec![paragraph(text("one")), paragraph(Inline::Strong(vec![text("two")]))]),
                Block::Table(vec![vec![vec![text("a")]], vec![vec![text("b")]]]),
                Block::Code("rust".into(), "let x;\n".into()),
            ]
        );
    }

    #[test]
    fn deep_nesting_ends_flat_instead_of_overflowing() {
        let deep = "> ".repeat(5000) + "end";
        assert_eq!(parse(&deep).len(), 1);
    }
}
