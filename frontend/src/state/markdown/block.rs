//! The blocks of a text in Markdown: lines to headlines, lists, tables, code and paragraphs.

use super::inline::{References, inlines};
use super::scan::{plain, tag};
use super::{Block, DEEPEST, Inline};

/// The names of elements that begin a block of HTML wherever they stand.
const HTML: &str = " address article aside base basefont blockquote body caption center col colgroup dd details dialog \
    dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe \
    legend li link main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td \
    tfoot th thead title tr track ul ";

/// The blocks of some lines.
pub fn blocks(lines: &[String], references: &References, depth: usize) -> Vec<Block> {
    let mut reader = Reader { lines, at: 0, references, depth, blocks: Vec::new(), open: Vec::new() };
    while reader.at < lines.len() {
        reader.block();
    }
    reader.close();
    reader.blocks
}

struct Reader<'a> {
    lines: &'a [String],
    at: usize,
    references: &'a References,
    depth: usize,
    blocks: Vec<Block>,
    /// The lines of the paragraph that is being read.
    open: Vec<&'a str>,
}

/// How far a line is indented.
pub fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// A line without up to so many spaces at its start.
fn dedent(line: &str, spaces: usize) -> &str {
    &line[indent(line).min(spaces)..]
}

fn is_rule(line: &str) -> bool {
    let Some(mark) = line.trim_start().chars().next().filter(|mark| "-*_".contains(*mark)) else { return false };
    line.chars().filter(|c| *c == mark).count() >= 3 && line.chars().all(|c| c == mark || c == ' ')
}

/// The mark of a fence, its length, and what stands behind it.
pub fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then(|| (mark, length, rest.trim()))
}

fn heading(line: &str) -> Option<(u8, &str)> {
    let line = line.trim();
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let text = rest.trim();
    let without = text.trim_end_matches('#');
    let text = if without.is_empty() || without.ends_with(' ') { without.trim_end() } else { text };
    u8::try_from(level).ok().map(|level| (level, text))
}

/// The mark of an entry of a list: its number where it has one, the character, and where its text begins.
fn marker(line: &str) -> Option<(Option<u64>, char, usize)> {
    let start = indent(line);
    let rest = &line[start..];
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = rest[digits..].chars().next()?;
    let number = match (digits, mark) {
        (0, '-' | '*' | '+') => None,
        (1..=9, '.' | ')') => Some(rest[..digits].parse().ok()?),
        _ => return None,
    };
    let after = &rest[digits + 1..];
    if !(after.is_empty() || after.starts_with(' ')) {
        return None;
    }
    // More than four spaces belong to code in the entry.
    let spaces = match indent(after) {
        1..=4 if !is_blank(after) => indent(after),
        _ => 1,
    };
    Some((number, mark, start + digits + 1 + spaces))
}

/// What ends the block of HTML that begins here; empty: a blank line.
fn html(line: &str, in_paragraph: bool) -> Option<&'static str> {
    let line = line.trim_start();
    let lower = line.get(..line.len().min(12)).unwrap_or(line).to_ascii_lowercase();
    for (start, end) in
        [("<script", "</script>"), ("<pre", "</pre>"), ("<style", "</style>"), ("<textarea", "</textarea>")]
    {
        if lower.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '>'])) {
            return Some(end);
        }
    }
    for (start, end) in [("<!--", "-->"), ("<?", "?>"), ("<![cdata[", "]]>")] {
        if lower.starts_with(start) {
            return Some(end);
        }
    }
    if lower.strip_prefix("<!").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
        return Some(">");
    }
    let name: String =
        line.strip_prefix('<')?.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
    if !name.is_empty() && HTML.contains(&format!(" {} ", name.to_ascii_lowercase())) {
        return Some("");
    }
    let alone = tag(line).is_some_and(|length| is_blank(&line[length..]));
    (alone && !in_paragraph).then_some("")
}

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.chars() {
        match (escaped, c, cells.last_mut()) {
            (true, '|', Some(cell)) => {
                cell.pop();
                cell.push('|');
            }
            (false, '|', _) => cells.push(String::new()),
            (_, c, Some(cell)) => cell.push(c),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|last| is_blank(last)) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn is_delimiter_row(line: &str) -> bool {
    let is = |cell: &String| {
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.chars().all(|c| c == '-')
    };
    line.contains('-') && (line.contains('|') || line.contains(':')) && cells(line).iter().all(is)
}

/// Whether a line cannot go on with a paragraph.
fn interrupts(line: &str) -> bool {
    let list = marker(line).is_some_and(|(number, _, at)| {
        number.is_none_or(|number| number == 1) && !is_blank(&line[at.min(line.len())..])
    });
    indent(line) < 4
        && (is_rule(line)
            || heading(line).is_some()
            || fence(line).is_some()
            || line.trim_start().starts_with('>')
            || list
            || html(line, true).is_some())
}

impl<'a> Reader<'a> {
    fn inlines(&self, text: &str) -> Vec<Inline> {
        inlines(text, self.references)
    }

    fn inside(&self, lines: &[String]) -> Vec<Block> {
        blocks(lines, self.references, self.depth + 1)
    }

    /// Ends the paragraph that is being read.
    fn close(&mut self) {
        if !self.open.is_empty() {
            let text =
                std::mem::take(&mut self.open).iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("\n");
            self.blocks.push(Block::Paragraph(self.inlines(text.trim_end())));
        }
    }

    fn push(&mut self, block: Block) {
        self.close();
        self.blocks.push(block);
    }

    fn block(&mut self) {
        let line = self.lines[self.at].as_str();
        if is_blank(line) {
            self.close();
            self.at += 1;
        } else if indent(line) >= 4 {
            if self.open.is_empty() { self.indented() } else { self.text(line) }
        } else if let Some((mark, length, language)) = fence(line) {
            self.fenced(mark, length, language, indent(line));
        } else if !self.open.is_empty() && self.underlined(line) {
            self.at += 1;
        } else if is_rule(line) {
            self.push(Block::Rule);
            self.at += 1;
        } else if let Some((level, text)) = heading(line) {
            let text = self.inlines(text);
            self.push(Block::Heading(level, text));
            self.at += 1;
        } else if line.trim_start().starts_with('>') && self.depth < DEEPEST {
            self.quote();
        } else if marker(line).is_some() && self.depth < DEEPEST && (self.open.is_empty() || interrupts(line)) {
            self.list();
        } else if let Some(end) = html(line, !self.open.is_empty()) {
            self.html(end);
        } else if self.open.is_empty()
            && self
                .lines
                .get(self.at + 1)
                .is_some_and(|next| is_delimiter_row(next) && cells(next).len() == cells(line).len())
        {
            self.table();
        } else {
            self.text(line);
        }
    }

    fn text(&mut self, line: &'a str) {
        self.open.push(line);
        self.at += 1;
    }

    /// A line of `=` or `-` makes a headline of the paragraph above it.
    fn underlined(&mut self, line: &str) -> bool {
        let line = line.trim();
        let level = match line.chars().next() {
            Some('=') => 1,
            Some('-') => 2,
            _ => return false,
        };
        let mark = if level == 1 { '=' } else { '-' };
        if !line.chars().all(|c| c == mark) {
            return false;
        }
        let text = std::mem::take(&mut self.open).iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
        let text = self.inlines(&text);
        self.blocks.push(Block::Heading(level, text));
        true
    }

    fn indented(&mut self) {
        let mut code: Vec<&str> = Vec::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| is_blank(line) || indent(line) >= 4) {
            code.push(dedent(line, 4));
            self.at += 1;
        }
        while code.last().is_some_and(|line| is_blank(line)) {
            code.pop();
        }
        self.push(Block::Code(String::new(), code.join("\n") + "\n"));
    }

    fn fenced(&mut self, mark: char, length: usize, language: &str, spaces: usize) {
        let mut code = String::new();
        self.at += 1;
        while let Some(line) = self.lines.get(self.at) {
            self.at += 1;
            if indent(line) < 4 && matches!(fence(line), Some((other, long, "")) if other == mark && long >= length) {
                break;
            }
            code.push_str(dedent(line, spaces));
            code.push('\n');
        }
        self.push(Block::Code(plain(language), code));
    }

    fn quote(&mut self) {
        let mut inside: Vec<String> = Vec::new();
        let mut lazy = false;
        while let Some(line) = self.lines.get(self.at) {
            match line.trim_start().strip_prefix('>').filter(|_| indent(line) < 4) {
                Some(rest) => {
                    let rest = rest.strip_prefix(' ').unwrap_or(rest);
                    // Only a paragraph goes on without the mark.
                    lazy = !is_blank(rest) && indent(rest) < 4 && fence(rest).is_none() && heading(rest).is_none();
                    inside.push(rest.to_owned());
                }
                None if lazy && !is_blank(line) && !interrupts(line) => inside.push(line.clone()),
                None => break,
            }
            self.at += 1;
        }
        let inside = self.inside(&inside);
        self.push(Block::Quote(inside));
    }

    fn list(&mut self) {
        let Some((start, mark, _)) = marker(&self.lines[self.at]) else { return };
        let mut entries = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            let Some((_, _, at)) =
                marker(line).filter(|(_, other, _)| *other == mark && indent(line) < 4 && !is_rule(line))
            else {
                break;
            };
            let mut inside = vec![line.get(at..).unwrap_or_default().to_owned()];
            self.at += 1;
            let mut after_blank = false;
            while let Some(line) = self.lines.get(self.at) {
                if is_blank(line) {
                    // An entry that begins with a blank line is over.
                    if inside.len() == 1 && is_blank(&inside[0]) {
                        break;
                    }
                    after_blank = true;
                    inside.push(String::new());
                } else if indent(line) >= at {
                    after_blank = false;
                    inside.push(line[at..].to_owned());
                } else if !after_blank && marker(line).is_none() && !interrupts(line) {
                    inside.push(line.trim_start().to_owned());
                } else {
                    break;
                }
                self.at += 1;
            }
            entries.push(self.entry(&inside));
        }
        self.push(Block::List(start, entries));
    }

    fn entry(&self, lines: &[String]) -> Vec<Block> {
        let task = [("[ ] ", false), ("[x] ", true), ("[X] ", true)]
            .into_iter()
            .find_map(|(box_of, done)| lines.first()?.strip_prefix(box_of).map(|rest| (rest.to_owned(), done)));
        let Some((rest, done)) = task else { return self.inside(lines) };
        let mut lines = lines.to_vec();
        lines[0] = rest;
        let mut blocks = self.inside(&lines);
        match blocks.first_mut() {
            Some(Block::Paragraph(text)) => text.insert(0, Inline::Task(done)),
            _ => blocks.insert(0, Block::Paragraph(vec![Inline::Task(done)])),
        }
        blocks
    }

    fn html(&mut self, end: &str) {
        let mut html = String::new();
        while let Some(line) = self.lines.get(self.at) {
            if end.is_empty() && is_blank(line) {
                break;
            }
            html.push_str(line);
            html.push('\n');
            self.at += 1;
            if !end.is_empty() && line.to_ascii_lowercase().contains(end) {
                break;
            }
        }
        self.push(Block::Html(html));
    }

    fn table(&mut self) {
        let head = cells(&self.lines[self.at]);
        let width = head.len();
        let mut rows = vec![head];
        self.at += 2;
        while let Some(line) = self.lines.get(self.at).filter(|line| !is_blank(line) && !interrupts(line)) {
            let mut row = cells(line);
            row.resize(width, String::new());
            rows.push(row);
            self.at += 1;
        }
        let rows = rows.iter().map(|row| row.iter().map(|cell| self.inlines(cell)).collect()).collect();
        self.push(Block::Table(rows));
    }
}
