//! The pieces of a line in Markdown: emphasis, code, links, pictures, HTML and escapes.

use std::collections::HashMap;

use super::scan::{address, autolink, entity, escape, label, tag, title};
use super::{Address, DEEPEST, Inline};

/// Addresses that stand elsewhere in the text, by their labels.
pub type References = HashMap<String, String>;

/// So many marks of emphasis in one paragraph are read; more are text.
const MOST_MARKS: usize = 400;

/// What has been read of a line: pieces, with how deep they are nested, and marks that may still become something.
enum Node {
    Piece(Inline, usize),
    Run { mark: char, count: usize, opens: bool, closes: bool },
    Bracket { image: bool, live: bool },
}

/// The pieces of a text.
pub fn inlines(text: &str, references: &References) -> Vec<Inline> {
    let mut reader = Reader { text, at: 0, nodes: Vec::new(), references };
    reader.read();
    emphasis(reader.nodes)
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    nodes: Vec<Node>,
    references: &'a References,
}

impl Reader<'_> {
    fn push(&mut self, piece: Inline) {
        self.nodes.push(Node::Piece(piece, 0));
    }

    fn push_text(&mut self, text: &str) {
        match self.nodes.last_mut() {
            Some(Node::Piece(Inline::Text(last), _)) => last.push_str(text),
            _ => self.push(Inline::Text(text.to_owned())),
        }
    }

    fn read(&mut self) {
        while let Some(c) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            let length = match c {
                '\\' if rest[1..].starts_with('\n') => {
                    self.push(Inline::Break);
                    2
                }
                '`' => self.code(rest),
                '<' => self.angle(rest),
                '\n' => self.line_end(),
                '*' | '_' | '~' => self.run(rest, c),
                '!' if rest[1..].starts_with('[') => {
                    self.nodes.push(Node::Bracket { image: true, live: true });
                    2
                }
                '[' => {
                    self.nodes.push(Node::Bracket { image: false, live: true });
                    1
                }
                ']' => self.bracket(),
                _ => {
                    let read = escape(rest).or_else(|| entity(rest));
                    let (text, length) = read.unwrap_or_else(|| (c.to_string(), c.len_utf8()));
                    self.push_text(&text);
                    length
                }
            };
            self.at += length;
        }
    }

    fn code(&mut self, rest: &str) -> usize {
        let length = rest.len() - rest.trim_start_matches('`').len();
        let mut from = length;
        while let Some(found) = rest[from..].find('`') {
            let at = from + found;
            let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
            if run == length {
                let text = rest[length..at].replace('\n', " ");
                let inner = text.strip_prefix(' ').and_then(|text| text.strip_suffix(' '));
                let text = inner.filter(|inner| !inner.trim().is_empty()).unwrap_or(&text);
                self.push(Inline::Code(text.to_owned()));
                return at + run;
            }
            from = at + run;
        }
        self.push_text(&rest[..length]);
        length
    }

    fn angle(&mut self, rest: &str) -> usize {
        if let Some((shown, leads, length)) = autolink(rest) {
            self.push(Inline::Link(Address::new(&leads), vec![Inline::Text(shown.to_owned())]));
            return length;
        }
        if let Some(length) = tag(rest) {
            self.push(Inline::Html(rest[..length].to_owned()));
            return length;
        }
        self.push_text("<");
        1
    }

    fn line_end(&mut self) -> usize {
        let hard = self.text[..self.at].ends_with("  ");
        if let Some(Node::Piece(Inline::Text(last), _)) = self.nodes.last_mut() {
            last.truncate(last.trim_end_matches(' ').len());
        }
        if hard {
            self.push(Inline::Break);
        } else {
            self.push_text(" ");
        }
        1
    }

    fn run(&mut self, rest: &str, mark: char) -> usize {
        let count = rest.len() - rest.trim_start_matches(mark).len();
        let is_mark = |c: char| !c.is_alphanumeric() && !c.is_whitespace();
        let before = self.text[..self.at].chars().next_back().unwrap_or(' ');
        let after = rest[count..].chars().next().unwrap_or(' ');
        let left = !after.is_whitespace() && (!is_mark(after) || before.is_whitespace() || is_mark(before));
        let right = !before.is_whitespace() && (!is_mark(before) || after.is_whitespace() || is_mark(after));
        let (opens, closes) = match mark {
            '_' => (left && (!right || is_mark(before)), right && (!left || is_mark(after))),
            _ => (left, right),
        };
        let marks = self.nodes.iter().filter(|node| matches!(node, Node::Run { .. })).count();
        if (mark == '~' && count > 2) || marks >= MOST_MARKS {
            self.push_text(&rest[..count]);
        } else {
            self.nodes.push(Node::Run { mark, count, opens, closes });
        }
        count
    }

    /// A `]`: the end of a link or picture, or a character.
    fn bracket(&mut self) -> usize {
        let open = self.nodes.iter().rposition(|node| matches!(node, Node::Bracket { .. }));
        let Some(open) = open else {
            self.push_text("]");
            return 1;
        };
        let Node::Bracket { image, live } = self.nodes[open] else { return 1 };
        let found = if live { self.target(open) } else { None };
        let Some((leads, length)) = found else {
            self.nodes[open] = Node::Piece(Inline::Text(if image { "![" } else { "[" }.to_owned()), 0);
            self.push_text("]");
            return 1;
        };
        let inside = emphasis(self.nodes.drain(open + 1..).collect());
        self.nodes.pop();
        if image {
            self.push(Inline::Image(Address::new(&leads), text_of(&inside)));
        } else {
            self.push(Inline::Link(Address::new(&leads), inside));
            // There are no links in links.
            for node in &mut self.nodes {
                if let Node::Bracket { image: false, live } = node {
                    *live = false;
                }
            }
        }
        length
    }

    /// Where what ends here leads, and how long the end is.
    fn target(&self, open: usize) -> Option<(String, usize)> {
        let rest = &self.text[self.at + 1..];
        if let Some(inside) = rest.strip_prefix('(')
            && let Some(found) = direct(inside)
        {
            return Some((found.0, found.1 + 2));
        }
        if let Some((name, _)) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(name, _)| !name.is_empty())
        {
            return self.references.get(&label(name)).map(|leads| (leads.clone(), name.len() + 3));
        }
        let shown: Vec<Inline> = self.nodes[open + 1..]
            .iter()
            .filter_map(|node| match node {
                Node::Piece(piece, _) => Some(piece.clone()),
                _ => None,
            })
            .collect();
        let leads = self.references.get(&label(&text_of(&shown)))?;
        Some((leads.clone(), if rest.starts_with("[]") { 3 } else { 1 }))
    }
}

/// What stands in the parentheses of a link, and how long it is, with the closing one.
fn direct(inside: &str) -> Option<(String, usize)> {
    let mut at = spaces(inside);
    let (leads, length) = address(&inside[at..])?;
    at += length;
    let gap = spaces(&inside[at..]);
    let titled = if gap > 0 { title(&inside[at + gap..])? } else { 0 };
    at += gap + titled;
    at += spaces(&inside[at..]);
    inside[at..].starts_with(')').then_some((leads, at + 1))
}

/// All text of some pieces.
fn text_of(pieces: &[Inline]) -> String {
    let one = |piece: &Inline| match piece {
        Inline::Text(text) | Inline::Code(text) | Inline::Html(text) | Inline::Image(_, text) => text.clone(),
        Inline::Emphasis(inside) | Inline::Strong(inside) | Inline::Strike(inside) | Inline::Link(_, inside) => {
            text_of(inside)
        }
        Inline::Break => "\n".to_owned(),
        Inline::Task(_) => String::new(),
    };
    pieces.iter().map(one).collect()
}

/// Pieces of what was read: marks that match become emphasis, and the others text.
fn emphasis(mut nodes: Vec<Node>) -> Vec<Inline> {
    let mut at = 0;
    while at < nodes.len() {
        let Node::Run { mark, count, opens, closes: true } = nodes[at] else {
            at += 1;
            continue;
        };
        let matches = |node: &Node| match node {
            Node::Run { mark: other, count: before, opens: true, closes } => {
                *other == mark
                    && if mark == '~' {
                        *before == count
                    } else {
                        !((opens || *closes) && (before + count) % 3 == 0 && (before % 3 != 0 || count % 3 != 0))
                    }
            }
            _ => false,
        };
        let Some(open) = nodes[..at].iter().rposition(matches) else {
            at += 1;
            continue;
        };
        let Node::Run { count: before, .. } = nodes[open] else { break };
        let used = if mark == '~' { count } else { count.min(before).min(2) };
        let deepest = nodes[open + 1..at].iter().map(|node| if let Node::Piece(_, depth) = node { *depth } else { 0 });
        let depth = deepest.max().unwrap_or(0) + 1;
        if depth > DEEPEST {
            at += 1;
            continue;
        }
        let inside = flat(nodes.drain(open + 1..at).collect());
        let piece = match (mark, used) {
            ('~', _) => Inline::Strike(inside),
            (_, 2) => Inline::Strong(inside),
            _ => Inline::Emphasis(inside),
        };
        nodes.insert(open + 1, Node::Piece(piece, depth));
        // The marks around it are now the opening one, the piece, the closing one.
        for index in [open + 2, open] {
            if let Node::Run { count, .. } = &mut nodes[index] {
                *count -= used;
                if *count == 0 {
                    nodes.remove(index);
                }
            }
        }
        at = open + if before == used { 1 } else { 2 };
    }
    flat(nodes)
}

/// Pieces, with marks that matched nothing as text.
fn flat(nodes: Vec<Node>) -> Vec<Inline> {
    let mut out: Vec<Inline> = Vec::new();
    for node in nodes {
        let piece = match node {
            Node::Piece(piece, _) => piece,
            Node::Run { mark, count, .. } => Inline::Text(mark.to_string().repeat(count)),
            Node::Bracket { image, .. } => Inline::Text(if image { "![" } else { "[" }.to_owned()),
        };
        match (out.last_mut(), piece) {
            (Some(Inline::Text(last)), Inline::Text(text)) => last.push_str(&text),
            (_, piece) => out.push(piece),
        }
    }
    out
}
