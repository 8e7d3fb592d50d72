//! Checks the rules of the tree that the compiler does not: the direction of imports, circles of files, the length of
//! files, module docs, listeners and callbacks of the console that may outlive their component, and links in the
//! documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::code::Code;
use crate::process::{root, say};
use crate::{circles, links};

/// The maximum length of a file, in lines. A longer one has more than one subject.
const MAX_LINES: usize = 400;

/// The modules of the server, each with the modules that it may import. [`UNBOUND`] modules and tests may import
/// everything.
const MAY_IMPORT: &[(&str, &str)] = &[
    ("background", ""),
    ("client_address", ""),
    ("clock", ""),
    ("files", ""),
    ("http_client", ""),
    ("rate_limit", ""),
    ("server", "background client_address rate_limit"),
    ("ssrf", "http_client"),
    ("standard_webhooks", ""),
    ("limits", ""),
    ("json", "limits"),
    ("token_bucket", ""),
    ("token_stream", "rate_limit"),
    ("mask", ""),
    ("waiting_lines", ""),
    ("flow", "limits mask"),
    ("engine", "clock limits flow"),
    ("store", "background files clock token_bucket token_stream flow engine"),
    ("problem", "engine store"),
    ("agent", "limits engine http_client ssrf"),
    ("tool", "engine flow http_client mask ssrf json"),
    ("handler", "clock limits json http_client standard_webhooks ssrf engine"),
    ("worker", "background clock limits token_stream flow engine store agent tool handler"),
    ("live", "client_address clock rate_limit token_bucket token_stream json engine store problem"),
    ("notify", "background clock http_client rate_limit ssrf standard_webhooks store"),
    ("auth", "client_address clock http_client limits store problem rate_limit waiting_lines"),
    ("audit", "background clock files store"),
    ("archive", "background clock files engine store audit"),
    ("erasure", "background store audit"),
    ("http", "client_address rate_limit waiting_lines clock json flow engine store problem notify handler auth audit"),
];

/// Modules that may import everything, and that no other module may import.
const UNBOUND: &[&str] = &["app", "cli", "config", "embed", "fuzzing", "main", "lib"];

/// Checks all rules. Fails if any is broken, with a list of all breaches.
pub fn run() -> Result<()> {
    say("Checking the tree");
    let mut breaches = Vec::new();
    let mut files = Vec::new();
    let mut codes = BTreeMap::new();
    for folder in
        ["shared/src", "backend/src", "countersign", "frontend/src", "tests", "fuzz", "bench/src", "xtask/src"]
    {
        collect(&root().join(folder), &mut files)?;
    }
    for path in &files {
        let text = fs::read_to_string(path)?;
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let code = Code::parse(&text).with_context(|| shown.clone())?;
        let lines = text.lines().count();
        if lines > MAX_LINES {
            breaches.push(format!("{shown}: {lines} lines; at most {MAX_LINES}, one subject a file"));
        }
        if !text.starts_with("//!") {
            breaches.push(format!("{shown}: says nothing of what it owns (start it with `//!`)"));
        }
        if let Some(inside) = shown.strip_prefix("backend/src/") {
            check_imports(inside, &shown, &code, &mut breaches);
        }
        if shown.starts_with("frontend/src/") {
            check_listeners(&shown, &text, &mut breaches);
            check_callbacks(&shown, &text, &mut breaches);
        }
        codes.insert(path.clone(), code);
    }
    for source in ["shared/src", "backend/src", "frontend/src"] {
        breaches.extend(circles::breaches(&root().join(source), &codes));
    }
    breaches.extend(links::breaches(&root())?);
    if breaches.is_empty() {
        return Ok(());
    }
    bail!("{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}

fn check_imports(inside: &str, shown: &str, code: &Code, breaches: &mut Vec<String>) {
    let module = inside.split(['/', '.']).next().unwrap_or_default();
    let is_test = inside.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    if is_test || UNBOUND.contains(&module) {
        return;
    }
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
        breaches.push(format!("{shown}: module `{module}` has no rule of imports in xtask/src/tidy.rs"));
        return;
    };
    let named = code.imports.iter().map(|import| &import.path).chain(&code.paths);
    let imported: BTreeSet<_> = named.filter_map(|path| path.strip_prefix("crate::")?.split("::").next()).collect();
    for imported in imported {
        let known = MAY_IMPORT.iter().any(|(name, _)| *name == imported) || UNBOUND.contains(&imported);
        if known && imported != module && !allowed.split(' ').any(|name| name == imported) {
            breaches.push(format!("{shown}: `{module}` may not import `{imported}`"));
        }
    }
}

/// Checks that listeners of events that the browser may send while it removes an element are wrapped in `while_shown`
/// (`components/listeners.rs`).
fn check_listeners(shown: &str, text: &str, breaches: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        if ["blur", "focusout", "change", "toggle"].iter().any(|event| listens_bare(line, event)) {
            breaches.push(format!("{shown}:{}: wrap the listener in `while_shown`", number + 1));
        }
    }
}

/// Whether a line has a listener of this event that is not wrapped in `while_shown`.
fn listens_bare(line: &str, event: &str) -> bool {
    let ways = [("on:", "="), ("on:", ":target="), (".on(ev::", ", "), (".on(leptos::ev::", ", ")];
    ways.iter().any(|(before, after)| {
        let listener = format!("{before}{event}{after}");
        line.split(&listener).skip(1).any(|listener| !listener.starts_with("while_shown("))
    })
}

/// Checks that async blocks call callbacks with `try_run`: after an `await`, the callback's page may be gone, and `run`
/// would panic.
fn check_callbacks(shown: &str, text: &str, breaches: &mut Vec<String>) {
    let lines = lines_with_run(text);
    breaches.extend(lines.map(|line| format!("{shown}:{line}: call the callback with `try_run`")));
}

/// The lines on which an async block calls `run` of anything but the API's client.
fn lines_with_run(text: &str) -> impl Iterator<Item = usize> {
    let blocks = ["async {", "async move {"].into_iter().flat_map(|start| text.match_indices(start));
    let inside = blocks.flat_map(|(at, start)| {
        let begin = at + start.len();
        let block = &text[begin..begin + length_of_block(&text[begin..])];
        let calls = block.match_indices(".run(").filter(|(at, _)| !block[..*at].ends_with("api"));
        calls.map(move |(at, _)| begin + at)
    });
    let lines: BTreeSet<usize> = inside.map(|at| text[..at].lines().count()).collect();
    lines.into_iter()
}

/// The length of a block, from after its opening brace to its closing one.
fn length_of_block(text: &str) -> usize {
    let mut open = 1_usize;
    let closes = |(at, c): (usize, char)| {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        (open == 0).then_some(at)
    };
    text.char_indices().find_map(closes).unwrap_or(text.len())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{lines_with_run, listens_bare};

    #[test]
    fn a_listener_of_what_the_browser_sends_while_it_removes_an_element_is_wrapped() {
        for line in [
            "<input on:change=move |event| a(event)/>",
            "<input on:change:target=move |event| a(event)/>",
            "<input on:change=while_shown(a) on:change=b/>",
            "view! { <i/> }.on(ev::change, move |_| a())",
            "view! { <i/> }.on(leptos::ev::change, move |_| a())",
        ] {
            assert!(listens_bare(line, "change"), "{line}");
        }
        for line in [
            "<input on:change=while_shown(move |event| a(event)) on:input=b/>",
            "<input on:change:target=while_shown(a)/>",
            "view! { <i/> }.on(ev::change, while_shown(a))",
            "window_event_listener(leptos::ev::change, move |_| a())",
        ] {
            assert!(!listens_bare(line, "change"), "{line}");
        }
    }

    #[test]
    fn an_async_block_calls_a_callback_only_if_it_is_still_there() {
        let text = "
            let done = move |_| done.run(());
            let send = move || async move {
                if let Ok(run) = api.run(id).await {
                    done.try_run(run);
                    made.run(());
                }
            };
            let made = move |_| made.run(());";
        assert_eq!(lines_with_run(text).collect::<Vec<_>>(), [6]);
    }
}
