//! The console's reader of Markdown held against pulldown-cmark, which is too large for the console's bundle: what people
//! and models write must mean the same to both.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{Address, Block, DEEPEST, Inline, parse};

fn expected(text: &str) -> Vec<Block> {
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

/// One after the other, and all together.
const TEXTS: &[&str] = &[
    "# The ocean\n\nThe ocean covers *seven tenths* of the **planet**.\nIt is `deep`.\n\n## Why it matters\n\nBecause.",
    "Setext\n======\n\nSecond\n------\n\nText right\nafter it.",
    "- one\n- two\n  - inner\n  - inner two\n- three\n\nAfter the list.",
    "* a\n\n* b\n\n  second paragraph of b\n* c",
    "1. first\n2. second\n   1. nested\n3. third\n\n7. another\n8. list",
    "- [ ] open\n- [x] done\n- [X] done too",
    "> quoted\n> still\n>\n> - with a list\n\n> another",
    "```python\ndef f(x):\n    return x * 2  # **not bold**\n```\n\n~~~\nplain\n~~~",
    "    indented code\n    second line\n\nparagraph",
    "| Name | Value |\n|------|------:|\n| a | 1 |\n| **b** | `2` |\n\nAfter.",
    "Inline [link](https://example.com/a?b=c&d=e), [titled](https://example.com \"Title\"), <https://auto.example.com>.",
    "[ref][one] and [one] and [none].\n\n[one]: https://example.com/one \"One\"",
    "![A picture](https://example.com/p.png) in text",
    "**bold** __bold__ *it* _it_ ***both*** **bold with *it* inside** *it with **bold** inside*",
    "snake_case_name and 2*3*4 and * alone and ** and a*b*c",
    "~~gone~~ and ~~ not",
    "A hard break  \nhere, and one\\\nthere.",
    "Escapes: \\*not\\* \\# \\[x\\] \\`y\\` and &amp; &lt;tag&gt; &copy; &#35; &#x22;",
    "`code with ``ticks`` inside` and `` a ` b `` and `  padded  `",
    "<script>alert(1)</script>\n\nText <b>bold</b> <img src=x onerror=alert(1)> end.",
    "<!-- hidden -->\n\nshown",
    "***\n\n---\n\n___\n\n- - -",
    "Price: $5 (that's 10% off!) \u{2013} \u{201c}quoted\u{201d} \u{2026} caf\u{e9} \u{65e5}\u{672c}\u{8a9e} \u{1f30a}",
    "Text directly\n# followed by a heading\nand text\n- and a list\n- of two\n> and a quote",
    "1) one\n2) two\n\nnot 3. a list",
    "Key: value\nOther: value\n\nhttps://bare.example.com stays text",
    "#not a heading\n\n####### nor this\n\n# closed #\n\n#",
    "- item\n\n      code in an item\n\n  and text\n",
    "1. step\n\n   ```sh\n   cargo run\n   ```\n\n2. next",
];

#[test]
fn what_people_and_models_write_means_the_same_to_both() {
    for text in TEXTS {
        assert_eq!(parse(text), expected(text), "of {text:?}");
    }
    let all = TEXTS.join("\n\n");
    assert_eq!(parse(&all), expected(&all));
}
