//! Markdown as a tree that can only be text, so that nothing an agent wrote is ever markup: raw HTML is shown as it
//! was written, addresses are kept apart from what is shown. CommonMark as people write it, with tables, tasks and
//! struck out text; small, since the console loads it.

mod block;
mod inline;
#[cfg(test)]
mod reference;
mod scan;

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
    let mut lines: Vec<String> = text.lines().map(|line| line.replace('\t', "    ")).collect();
    let references = references(&mut lines);
    block::blocks(&lines, &references, 0)
}

/// Takes the lines out that say where links lead: `[label]: address "title"`, each where a paragraph could begin.
fn references(lines: &mut Vec<String>) -> inline::References {
    let mut references = inline::References::new();
    let (mut may_begin, mut fenced) = (true, None);
    lines.retain(|line| {
        match (fenced, block::fence(line)) {
            (None, Some((mark, length, _))) => fenced = Some((mark, length)),
            (Some((mark, length)), Some((other, long, ""))) if mark == other && long >= length => fenced = None,
            _ => {}
        }
        let found = if may_begin && fenced.is_none() { reference(line) } else { None };
        may_begin = found.is_some() || line.trim().is_empty();
        let stays = found.is_none();
        if let Some((label, address)) = found {
            references.entry(label).or_insert(address);
        }
        stays
    });
    references
}

fn reference(line: &str) -> Option<(String, String)> {
    if block::indent(line) > 3 {
        return None;
    }
    let (label, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let rest = rest.trim();
    let (address, length) = scan::address(rest).filter(|(_, length)| *length > 0)?;
    let title = rest[length..].trim();
    let whole = scan::title(title)? == title.len();
    (whole && !label.trim().is_empty() && !label.contains(['[', ']'])).then(|| (scan::label(label), address))
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
                Block::Html("<!-- and ship it -->\n".into()),
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
    fn marks_nest_and_lone_ones_stay() {
        let shown = |source: &str| format!("{:?}", parse(source));
        let strong = Inline::Strong(vec![text("b "), Inline::Emphasis(vec![text("c")])]);
        assert_eq!(parse("a **b *c*** d"), [Block::Paragraph(vec![text("a "), strong, text(" d")])]);
        assert_eq!(parse("2 * 3 snake_case_name \\*x\\*"), [Block::Paragraph(vec![text("2 * 3 snake_case_name *x*")])]);
        assert!(shown("~~gone~~ and `a*b*`").contains("Strike([Text(\"gone\")]), Text(\" and \"), Code(\"a*b*\")"));
        assert!(shown("one  \ntwo\nthree").contains("Text(\"one\"), Break, Text(\"two three\")"));
    }

    #[test]
    fn links_are_found_in_all_their_forms() {
        let link = |leads: &str, shown: &str| Inline::Link(Address::new(leads), vec![text(shown)]);
        assert_eq!(
            parse("[a](https://x.y/(b) \"t\") [c][R] [r] <https://q.r> ![p](i.png) [n]\n\n[r]: https://z 'title'"),
            [Block::Paragraph(vec![
                link("https://x.y/(b)", "a"),
                text(" "),
                link("https://z", "c"),
                text(" "),
                link("https://z", "r"),
                text(" "),
                link("https://q.r", "https://q.r"),
                text(" "),
                Inline::Image(Address::new("i.png"), "p".into()),
                text(" [n]"),
            ])]
        );
    }

    #[test]
    fn blocks_end_where_others_begin() {
        let source =
            "Head\n===\ntext\n# One #\n- a\n  - b\n\n  more\n- [x] done\n\n> q\nlazy\n\n    code\n\n***\n<div>\nx\n";
        let paragraph = |inside| Block::Paragraph(vec![text(inside)]);
        assert_eq!(
            parse(source),
            [
                Block::Heading(1, vec![text("Head")]),
                paragraph("text"),
                Block::Heading(1, vec![text("One")]),
                Block::List(
                    None,
                    vec![
                        vec![paragraph("a"), Block::List(None, vec![vec![paragraph("b")]]), paragraph("more")],
                        vec![Block::Paragraph(vec![Inline::Task(true), text("done")])],
                    ]
                ),
                Block::Quote(vec![paragraph("q lazy")]),
                Block::Code(String::new(), "code\n".into()),
                Block::Rule,
                Block::Html("<div>\nx\n".into()),
            ]
        );
    }

    #[test]
    fn nothing_makes_it_stop() {
        let pieces =
            ["*", "_", "[", "](", "`", "<", "~~", "\n", "- ", "> ", "|", "a", "&#x;", "\\", "1. ", "é", "]: x", "    "];
        let mut seed = 7_usize;
        for _ in 0..3000 {
            let mut source = String::new();
            for _ in 0..seed % 40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                source.push_str(pieces[(seed >> 33) % pieces.len()]);
            }
            seed = seed.wrapping_add(1);
            drop(parse(&source));
        }
        drop(parse(&"*a ".repeat(20_000)));
        drop(parse(&"[".repeat(20_000)));
        drop(parse(&"**a".repeat(20_000)));
    }

    #[test]
    fn deep_nesting_ends_flat_instead_of_overflowing() {
        let deep = "> ".repeat(5000) + "end";
        assert_eq!(parse(&deep).len(), 1);
    }
}
