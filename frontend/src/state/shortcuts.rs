//! The keyboard shortcuts of the console: the key of each, and what it does, as the help lists them.

/// A keyboard shortcut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortcut {
    /// The key as `components::shortcuts::key_of` names it. Several keys have spaces between them.
    pub keys: &'static str,
    /// What it does, in words.
    pub does: &'static str,
}

const fn shortcut(keys: &'static str, does: &'static str) -> Shortcut {
    Shortcut { keys, does }
}

pub const NEXT: Shortcut = shortcut("j", "next review");
pub const PREVIOUS: Shortcut = shortcut("k", "previous review");
pub const SELECT: Shortcut = shortcut("x", "select it, to decide several together");
pub const SEARCH: Shortcut = shortcut("/", "search");
pub const EDIT: Shortcut = shortcut("e", "edit");
pub const DELEGATE: Shortcut = shortcut("d", "delegate");
pub const WRITE: Shortcut = shortcut("c", "write a note or a correction");
pub const UNDO: Shortcut = shortcut("u", "undo, until it is sent");
pub const COMMANDS: Shortcut = shortcut("Ctrl K", "all commands; ⌘ K on a Mac");
pub const HELP: Shortcut = shortcut("?", "this help");

/// All shortcuts, by what they are about.
pub const ALL: &[(&str, &[Shortcut])] = &[
    (
        "The list",
        &[
            NEXT,
            PREVIOUS,
            shortcut("Enter", "read the review"),
            SELECT,
            SEARCH,
            shortcut("Esc", "back to the list; there, clear a selection for which nothing is chosen"),
        ],
    ),
    (
        "The review",
        &[
            shortcut("a", "approve; in a critical review, go to the button"),
            shortcut("1 … 9", "choose that option"),
            shortcut("r", "reject; in a critical review, go to the button"),
            EDIT,
            DELEGATE,
            WRITE,
            shortcut("Ctrl Enter", "send the open form, the choices or what you wrote"),
            UNDO,
        ],
    ),
    ("Everywhere", &[COMMANDS, HELP]),
];
