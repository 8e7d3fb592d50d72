//! Converts the events of pulldown-cmark to the tree. It tracks how far the source is accounted for: if the parser
//! skips text that is more than markup, the text is shown.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, OffsetIter, Options, Parser, Tag, TagEnd};

use super::{Address, Block, Inline, MAX_DEPTH, MAX_PIECES};

/// Reads the blocks of a text. The number is how many of its bytes they cover: all, unless there are too many pieces.
pub fn read(source: &str) -> (Vec<Block>, usize) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(source, options).into_offset_iter();
    let mut reader = Reader { source, events, at: 0, depth: 0, pieces: 0 };
    let mut blocks = reader.blocks(source.len());
    if reader.pieces < MAX_PIECES {
        blocks.extend(reader.left_out(source.len()).map(Block::Source));
        reader.at = source.len();
    }
    (blocks, reader.at)
}

struct Reader<'a> {
    source: &'a str,
    events: OffsetIter<'a>,
    /// The byte offset up to which the source is accounted for: it is in the tree, or it is markup.
    at: usize,
    depth: usize,
    pieces: usize,
}

impl<'a> Reader<'a> {
    /// The next event; `None` at the end, or when there are too many pieces.
    fn next(&mut self) -> Option<(Event<'a>, Range<usize>)> {
        if self.pieces < MAX_PIECES { self.events.next() } else { None }
    }

    fn count<T>(&mut self, piece: T) -> T {
        self.pieces += 1;
        piece
    }

    /// The source that the parser has skipped before this offset, if it is more than markup. It counts as accounted for
    /// then.
    fn left_out(&mut self, until: usize) -> Option<String> {
        self.skipped(until, |c| c.is_ascii_punctuation())
    }

    fn skipped(&mut self, until: usize, is_markup: fn(char) -> bool) -> Option<String> {
        let gap = self.source.get(self.at..until)?;
        self.at = until;
        gap.contains(|c: char| !c.is_whitespace() && !is_markup(c)).then(|| self.count(gap.trim().to_owned()))
    }

    /// The source of the element that has just begun; skips the events up to its end.
    fn source(&mut self, range: Range<usize>) -> String {
        let mut open = 1;
        while open > 0 {
            match self.events.next() {
                Some((Event::Start(_), _)) => open += 1,
                Some((Event::End(_), _)) => open -= 1,
                Some(_) => {}
                None => break,
            }
        }
        self.at = range.end;
        self.source[range].to_owned()
    }

    /// Reads blocks up to the end of the enclosing block. Text outside a paragraph, as in tight lists, becomes a
    /// paragraph.
    fn blocks(&mut self, end: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut loose = Vec::new();
        while let Some((event, range)) = self.next() {
            if is_inline(&event) {
                self.inline(event, range, &mut loose);
                continue;
            }
            self.close(&mut blocks, &mut loose);
            if matches!(event, Event::End(_)) {
                blocks.extend(self.left_out(end).map(Block::Source));
                return blocks;
            }
            blocks.extend(self.left_out(range.start).map(Block::Source));
            let block = self.block(event, range);
            blocks.push(self.count(block));
        }
        self.close(&mut blocks, &mut loose);
        blocks
    }

    fn close(&mut self, blocks: &mut Vec<Block>, loose: &mut Vec<Inline>) {
        if !loose.is_empty() {
            blocks.push(self.count(Block::Paragraph(std::mem::take(loose))));
        }
    }

    fn block(&mut self, event: Event<'a>, range: Range<usize>) -> Block {
        match event {
            Event::Start(Tag::Paragraph) => Block::Paragraph(self.inlines(Some(range.end))),
            Event::Start(Tag::Heading { level, .. }) => Block::Heading(level as u8, self.inlines(Some(range.end))),
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let text = self.text();
                self.at = range.end;
                Block::Code(language, text)
            }
            Event::Start(Tag::HtmlBlock) => {
                let html = self.text();
                self.at = range.end;
                Block::Source(html)
            }
            Event::Start(Tag::BlockQuote(_)) if self.depth < MAX_DEPTH => {
                Block::Quote(self.deeper(|reader| reader.blocks(range.end)))
            }
            Event::Start(Tag::List(start)) if self.depth < MAX_DEPTH => {
                Block::List(start, self.deeper(|reader| reader.items(range.end)))
            }
            Event::Start(Tag::Table(_)) => Block::Table(self.rows(range.end)),
            Event::Start(_) => Block::Source(self.source(range)),
            Event::Rule => {
                self.at = range.end;
                Block::Rule
            }
            _ => {
                self.at = range.end;
                Block::Source(self.source[range].to_owned())
            }
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let inside = read(self);
        self.depth -= 1;
        inside
    }

    fn items(&mut self, end: usize) -> Vec<Vec<Block>> {
        let mut items = Vec::new();
        while let Some((event, range)) = self.next() {
            let is_item = matches!(event, Event::Start(_));
            let until = if is_item { range.start } else { end };
            items.extend(self.left_out(until).map(|gap| vec![Block::Source(gap)]));
            if !is_item {
                break;
            }
            self.at = range.start + marker(&self.source[range.clone()]);
            self.count(());
            items.push(self.blocks(range.end));
        }
        items
    }

    fn rows(&mut self, end: usize) -> Vec<Vec<Vec<Inline>>> {
        let mut rows: Vec<Vec<Vec<Inline>>> = Vec::new();
        while let Some((event, range)) = self.next() {
            match event {
                Event::Start(Tag::TableHead | Tag::TableRow) => {
                    rows.extend(self.left_out(range.start).map(|gap| vec![vec![Inline::Source(gap)]]));
                    rows.push(self.count(Vec::new()));
                }
                Event::Start(_) => {
                    self.at = self.at.max(range.start);
                    self.count(());
                    let cell = self.inlines(Some(range.end));
                    if let Some(row) = rows.last_mut() {
                        row.push(cell);
                    }
                }
                Event::End(TagEnd::TableHead | TagEnd::TableRow) => {
                    // The cells beyond the columns of the head.
                    let more = self.skipped(range.end, |c| c == '|');
                    if let Some(row) = rows.last_mut() {
                        row.extend(more.map(|gap| vec![Inline::Source(gap)]));
                    }
                }
                _ => {
                    rows.extend(self.left_out(end).map(|gap| vec![vec![Inline::Source(gap)]]));
                    break;
                }
            }
        }
        rows
    }

    /// Reads inline pieces up to the end of the enclosing element. Without `end`, the source after the last piece is
    /// not checked, since the caller accounts for it, like for the address of a link.
    fn inlines(&mut self, end: Option<usize>) -> Vec<Inline> {
        let mut out = Vec::new();
        while let Some((event, range)) = self.next() {
            if matches!(event, Event::End(_)) {
                out.extend(end.and_then(|end| self.left_out(end)).map(Inline::Source));
                break;
            }
            self.inline(event, range, &mut out);
        }
        out
    }

    fn inline(&mut self, event: Event<'a>, range: Range<usize>, out: &mut Vec<Inline>) {
        out.extend(self.left_out(range.start).map(Inline::Source));
        let end = range.end;
        let piece = match event {
            Event::Start(tag) if self.depth < MAX_DEPTH => return self.mark(tag, range, out),
            Event::Start(_) => Inline::Source(self.source(range)),
            Event::Text(text) => Inline::Text(text.to_string()),
            Event::Code(text) => Inline::Code(text.to_string()),
            Event::SoftBreak => Inline::Text(" ".into()),
            Event::HardBreak => Inline::Break,
            Event::TaskListMarker(done) => Inline::Task(done),
            _ => Inline::Source(self.source[range].to_owned()),
        };
        self.at = self.at.max(end);
        match (out.last_mut(), piece) {
            (Some(Inline::Text(last)), Inline::Text(text)) => last.push_str(&text),
            (_, piece) => out.push(self.count(piece)),
        }
    }

    /// Reads an inline element that contains text. The title of a link or an image follows it as text, as nobody would
    /// see it otherwise.
    fn mark(&mut self, tag: Tag<'a>, range: Range<usize>, out: &mut Vec<Inline>) {
        self.count(());
        let within = |reader: &mut Self| reader.deeper(|reader| reader.inlines(Some(range.end)));
        let (piece, title) = match tag {
            Tag::Emphasis => (Inline::Emphasis(within(self)), None),
            Tag::Strong => (Inline::Strong(within(self)), None),
            Tag::Strikethrough => (Inline::Strike(within(self)), None),
            Tag::Link { link_type, dest_url, title, .. } => {
                let scheme = if link_type == LinkType::Email { "mailto:" } else { "" };
                let address = Address::new(&format!("{scheme}{dest_url}"));
                (Inline::Link(address, self.deeper(|reader| reader.inlines(None))), Some(title))
            }
            Tag::Image { dest_url, title, .. } => (Inline::Image(Address::new(&dest_url), self.text()), Some(title)),
            _ => (Inline::Source(self.source(range.clone())), None),
        };
        out.push(piece);
        if self.pieces < MAX_PIECES {
            self.at = self.at.max(range.end);
            let title = title.filter(|title| !title.is_empty());
            out.extend(title.map(|title| self.count(Inline::Source(format!("\"{title}\"")))));
        }
    }

    /// The plain text of the element that has just begun, up to its end, with the addresses and titles of links in it.
    fn text(&mut self) -> String {
        let mut out = String::new();
        let mut open = 1;
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                    open += 1;
                    for part in [&dest_url, &title] {
                        out.push_str(part);
                        out.push(' ');
                    }
                }
                Event::Start(_) => open += 1,
                Event::End(_) => {
                    open -= 1;
                    if open == 0 {
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

fn is_inline(event: &Event<'_>) -> bool {
    match event {
        Event::Start(tag) => {
            matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
        }
        Event::End(_) | Event::Rule | Event::Html(_) => false,
        _ => true,
    }
}

/// The length in bytes of the marker of a list item, including the check box of a task.
fn marker(item: &str) -> usize {
    let text = item.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let text = text.strip_prefix(['-', '*', '+', '.', ')']).unwrap_or(text).trim_start();
    let boxed = ["[ ]", "[x]", "[X]"].into_iter().find_map(|task| text.strip_prefix(task));
    item.len() - boxed.filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(text).len()
}
