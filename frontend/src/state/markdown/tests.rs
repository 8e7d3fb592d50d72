//! What a reviewer sees of Markdown, whether it was written in good faith or not.

use proptest::prelude::*;

use super::*;

fn text(text: &str) -> Inline {
    Inline::Text(text.into())
}

fn paragraph(pieces: Vec<Inline>) -> Block {
    Block::Paragraph(pieces)
}

fn blocks(source: &str) -> Vec<Block> {
    let document = parse(source);
    assert_eq!(document.rest, "");
    document.blocks
}

#[test]
fn html_stays_visible_and_is_never_markup() {
    assert_eq!(
        blocks("Hi <b onclick=x>you</b>\n\n<script>alert(1)</script>\n\n<!-- and ship it -->"),
        [
            paragraph(vec![
                text("Hi "),
                Inline::Source("<b onclick=x>".into()),
                text("you"),
                Inline::Source("</b>".into())
            ]),
            Block::Source("<script>alert(1)</script>\n".into()),
            Block::Source("<!-- and ship it -->".into()),
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
fn blocks_keep_their_shape() {
    let one = |inline| vec![paragraph(vec![inline])];
    assert_eq!(
        blocks("1. one\n2. **two**\n\n| a |\n|---|\n| b |\n\n```rust\nlet x;\n```\n\n> q\nlazy\n\n***\n"),
        [
            Block::List(Some(1), vec![one(text("one")), one(Inline::Strong(vec![text("two")]))]),
            Block::Table(vec![vec![vec![text("a")]], vec![vec![text("b")]]]),
            Block::Code("rust".into(), "let x;\n".into()),
            Block::Quote(one(text("q lazy"))),
            Block::Rule,
        ]
    );
    assert_eq!(
        blocks("Head\n===\n- a\n  - b\n\n  more\n- [x] done\n"),
        [
            Block::Heading(1, vec![text("Head")]),
            Block::List(
                None,
                vec![
                    vec![
                        paragraph(vec![text("a")]),
                        Block::List(None, vec![one(text("b"))]),
                        paragraph(vec![text("more")])
                    ],
                    vec![paragraph(vec![Inline::Task(true), text("done")])],
                ]
            ),
        ]
    );
}

#[test]
fn tabs_in_code_stay_tabs() {
    let code = |language: &str, text: &str| Block::Code(language.into(), text.into());
    assert_eq!(blocks("```make\nall:\n\tcc\ta.c\n```"), [code("make", "all:\n\tcc\ta.c\n")]);
    assert_eq!(blocks("\tif x:\n\t\treturn"), [code("", "if x:\n\treturn")]);
    assert_eq!(blocks("`a\tb`"), [paragraph(vec![Inline::Code("a\tb".into())])]);
}

#[test]
fn what_commonmark_leaves_out_is_shown_as_its_source() {
    let link = Inline::Link(Address::new("https://z"), vec![text("r")]);
    let source = |text: &str| Inline::Source(text.into());
    assert_eq!(
        blocks("[r]\n\n[r]: https://z 'wire the money'"),
        [paragraph(vec![link, source("\"wire the money\"")]), Block::Source("[r]: https://z 'wire the money'".into())]
    );
    assert_eq!(blocks("[//]: # (obey)\ntext"), [Block::Source("[//]: # (obey)".into()), paragraph(vec![text("text")])]);
    assert_eq!(
        blocks("> [x]: y\n> [x]: again\n\nend"),
        [Block::Quote(vec![Block::Source("> [x]: y\n> [x]: again".into())]), paragraph(vec![text("end")])]
    );
    assert_eq!(
        blocks("| a |\n|---|\n| b | secret | ! |"),
        [Block::Table(vec![vec![vec![text("a")]], vec![vec![text("b")], vec![source("| secret | ! |")]]])]
    );
    assert_eq!(
        blocks("![a [b](c \"d\")](e \"f\")"),
        [paragraph(vec![Inline::Image(Address::new("e"), "a c d b".into()), source("\"f\"")])]
    );
}

/// All visible text of a document.
fn visible(document: &Document) -> String {
    fn lines(pieces: &[Inline], out: &mut String) {
        for piece in pieces {
            match piece {
                Inline::Text(text) | Inline::Code(text) | Inline::Source(text) => out.push_str(text),
                Inline::Emphasis(inside) | Inline::Strong(inside) | Inline::Strike(inside) => lines(inside, out),
                Inline::Link(address, inside) => {
                    lines(inside, out);
                    out.push_str(&address.text);
                }
                Inline::Image(address, alt) => out.extend([alt.as_str(), " ", &address.text]),
                Inline::Task(_) | Inline::Break => out.push(' '),
            }
        }
    }
    fn all(blocks: &[Block], out: &mut String) {
        for block in blocks {
            out.push('\n');
            match block {
                Block::Heading(_, pieces) | Block::Paragraph(pieces) => lines(pieces, out),
                Block::Code(language, text) => out.extend([language.as_str(), "\n", text]),
                Block::Quote(inside) => all(inside, out),
                Block::List(_, items) => items.iter().for_each(|item| all(item, out)),
                Block::Table(rows) => rows.iter().flatten().for_each(|cell| lines(cell, out)),
                Block::Source(text) => out.push_str(text),
                Block::Rule => {}
            }
        }
    }
    let mut out = String::new();
    all(&document.blocks, &mut out);
    out + "\n" + &document.rest
}

/// The number of blocks and pieces in the tree, and its greatest depth.
fn extent(blocks: &[Block], depth: usize) -> (usize, usize) {
    fn pieces(all: &[Inline], depth: usize) -> (usize, usize) {
        let inside = all.iter().map(|piece| match piece {
            Inline::Emphasis(inside) | Inline::Strong(inside) | Inline::Strike(inside) | Inline::Link(_, inside) => {
                pieces(inside, depth + 1)
            }
            _ => (0, depth),
        });
        inside.fold((all.len(), depth), add)
    }
    fn add(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
        (one.0 + other.0, one.1.max(other.1))
    }
    let inside = blocks.iter().map(|block| match block {
        Block::Heading(_, inside) | Block::Paragraph(inside) => pieces(inside, depth),
        Block::Quote(inside) => extent(inside, depth + 1),
        Block::List(_, items) => items.iter().map(|item| extent(item, depth + 1)).fold((items.len(), depth), add),
        Block::Table(rows) => rows.iter().flatten().map(|cell| pieces(cell, depth)).fold((0, depth), add),
        _ => (0, depth),
    });
    inside.fold((blocks.len(), depth), add)
}

/// Texts of a megabyte each. The time to parse them and the size of the page stay small.
#[test]
fn no_shape_of_text_makes_a_page_too_large_or_hides_its_end() {
    let shapes = [
        "[](",
        "[",
        "]",
        "![](",
        "[a][",
        "a <!--",
        "<!--",
        "<",
        "<?",
        "<a ",
        "> ",
        ">",
        "* ",
        "*",
        "*a ",
        "**a",
        "_a_ ",
        "- ",
        "1. ",
        "* * ",
        "|",
        "|a",
        "| | |\n|-|-|\n",
        "`",
        "a`b``",
        "~~",
        "~~a",
        "&",
        "&amp;",
        "\\",
        "#",
        "# ",
        "\n",
        "\t",
        "    ",
        "- a\n",
        "> a\n",
        "a  \n",
        "[a]: b\n",
        "[a]: <",
        "\"",
        "$",
        "(",
        "a@b.c ",
        "<https://a> ",
        "é",
    ];
    for shape in shapes {
        let source = shape.repeat(1_000_000 / shape.len()) + "\n\nlast word";
        let document = parse(&source);
        let (pieces, depth) = extent(&document.blocks, 0);
        assert!(pieces <= 2 * MAX_PIECES && depth <= MAX_DEPTH, "{shape:?}: {pieces} pieces, {depth} deep");
        assert!(visible(&document).trim_end().ends_with("last word"), "{shape:?}");
    }
    for lines in [
        (1..900).map(|depth| "> ".repeat(depth) + "a\n").collect::<String>(),
        (0..900).map(|depth| " ".repeat(2 * depth) + "- a\n").collect(),
        format!("{}\n{}\n{}", "|a".repeat(1000), "|-".repeat(1000), "|b\n".repeat(60_000)),
    ] {
        let document = parse(&(lines + "\n\nlast word"));
        let (pieces, depth) = extent(&document.blocks, 0);
        assert!(pieces <= 2 * MAX_PIECES && depth <= MAX_DEPTH, "{pieces} pieces, {depth} deep");
        let seen = visible(&document);
        assert!(seen.trim_end().ends_with("last word"), "{:?}", &seen[seen.len().saturating_sub(99)..]);
    }
}

#[test]
fn a_long_text_is_laid_out_further_than_one_that_is_nearly_all_markup() {
    let prose = "A line as people write it: file_name is one word, and 3 * 4 is twelve.\n".repeat(2000);
    assert_eq!(parse(&prose).rest, "");
    let links = "[](".repeat(50_000);
    assert_eq!(links.len() - parse(&links).rest.len(), 30_000);
}

/// Marks of all kinds between words that are all different.
fn sources() -> impl Strategy<Value = (String, Vec<String>)> {
    let marks = [
        "*",
        "**",
        "_",
        "~~",
        "`",
        "``",
        "```",
        "```\n",
        "~~~ ",
        "[",
        "]",
        "](",
        "](<",
        ")",
        "!",
        "![",
        "][",
        "]: ",
        "[x]: ",
        "[x]",
        "\n[",
        "<",
        ">",
        "<b ",
        "<!-- ",
        " -->",
        "<https://",
        "&amp;",
        "&",
        ";",
        "\\",
        "\\\n",
        "  \n",
        "\n",
        "\n\n",
        "\n- ",
        "\n  - ",
        "\n1. ",
        "\n9) ",
        "\n> ",
        "\n>> ",
        "\n# ",
        " #\n",
        "\n===\n",
        "\n---\n",
        "\n    ",
        "\n\t",
        "\t",
        "\n| ",
        " | ",
        "|",
        "\n|-|-|\n",
        "\n|-|\n",
        "[ ] ",
        "[x] ",
        " \"",
        "\" ",
        "'",
        "(",
        " ",
        "é",
        "\u{200b}",
        "\r\n",
    ];
    let piece = prop_oneof![3 => prop::sample::select(marks.to_vec()).prop_map(Some), 1 => Just(None)];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| {
        let mut words = Vec::new();
        let source = pieces.into_iter().map(|piece| {
            piece.map_or_else(
                || {
                    words.push(format!("qz{}w", words.len()));
                    words.last().cloned().unwrap_or_default()
                },
                str::to_owned,
            )
        });
        (source.collect::<String>(), words)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_word_is_dropped((source, words) in sources()) {
        let document = parse(&source);
        let seen = visible(&document);
        for word in words {
            prop_assert!(seen.contains(&word), "{} of {:?} is not in {:?}", word, source, document);
        }
    }

    #[test]
    fn any_text_can_be_read_and_keeps_its_letters(source in any::<String>()) {
        let seen = visible(&parse(&source));
        for letter in source.chars().filter(|c| c.is_alphabetic()) {
            prop_assert!(seen.contains(letter), "{:?} of {:?} is not in {:?}", letter, source, seen);
        }
    }
}

#[test]
fn a_long_text_is_cut_between_lines_or_else_between_characters() {
    assert_eq!(pieces("one\ntwo\nthree", 9), ["one\ntwo\n", "three"]);
    assert_eq!(pieces("ääääää", 5), ["ää", "ää", "ää"]);
    assert_eq!(pieces("", 5), [""; 0]);
}
