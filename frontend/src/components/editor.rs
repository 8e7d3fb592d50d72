//! A text editor for flow files: line numbers, errors at their lines, Tab indents by two spaces. It is a plain
//! textarea, so that the browser's own undo, search, selection and screen readers work.

use std::collections::HashMap;

use leptos::html;
use leptos::prelude::*;
use shared::error::Mistake;
use wasm_bindgen::JsCast;

/// The height of a line in pixels, as in the style sheet.
const LINE: u32 = 20;
/// The number of lines shown above the line that is jumped to.
const ABOVE: u32 = 4;
/// The text that Tab inserts.
const INDENT: &str = "  ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMark {
    /// Whether the line has a mistake, not only warnings.
    pub bad: bool,
    /// The messages of the line, one on each line.
    pub text: String,
}

/// Marks by line number, from 1.
pub type LineMarks = HashMap<u32, LineMark>;

/// Collects mistakes and warnings by line; those without a line are put at the first.
pub fn marks(errors: &[Mistake], warnings: &[Mistake]) -> LineMarks {
    let mut marks = LineMarks::default();
    for (mistake, bad) in errors.iter().map(|one| (one, true)).chain(warnings.iter().map(|one| (one, false))) {
        let mark = marks.entry(mistake.line.unwrap_or(1)).or_insert_with(|| LineMark { bad, text: String::new() });
        if !mark.text.is_empty() {
            mark.text.push('\n');
        }
        mark.text.push_str(&mistake.message);
    }
    marks
}

/// An editor of plain text, with marks in the lines that have mistakes.
#[component]
pub fn Editor(
    text: RwSignal<String>,
    #[prop(into)] marks: Signal<LineMarks>,
    /// The line and column to jump to, from 1; reset to `None` afterwards.
    #[prop(into)]
    jump: RwSignal<Option<(u32, u32)>>,
    /// The accessible name of the editor.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    let area = NodeRef::<html::Textarea>::new();
    let scrolled = RwSignal::new(0);
    let lines = Memo::new(move |_| text.with(|text| u32::try_from(text.split('\n').count()).unwrap_or(u32::MAX)));

    Effect::new(move |_| {
        let (Some((line, column)), Some(area)) = (jump.get(), area.get()) else { return };
        let at = text.with_untracked(|text| offset(text, line, column));
        let _focused = area.focus();
        let _selected = area.set_selection_range(at, at);
        area.set_scroll_top(i32::try_from(line.saturating_sub(1 + ABOVE) * LINE).unwrap_or(i32::MAX));
        jump.set(None);
    });
    // After Escape, the next Tab leaves the editor, so that nobody is trapped in it.
    let leaving = StoredValue::new(false);
    let key = move |event: web_sys::KeyboardEvent| {
        let left = leaving.get_value();
        leaving.set_value(event.key() == "Escape");
        let plain = !event.ctrl_key() && !event.alt_key() && !event.meta_key() && !event.shift_key();
        if event.key() != "Tab" || !plain || left {
            return;
        }
        event.prevent_default();
        if insert(INDENT) {
            return;
        }
        let Some(area) = area.get_untracked() else { return };
        let (Ok(Some(start)), Ok(Some(end))) = (area.selection_start(), area.selection_end()) else { return };
        if area.set_range_text_with_start_and_end(INDENT, start, end).is_ok() {
            let at = start + u32::try_from(INDENT.len()).unwrap_or(0);
            let _moved = area.set_selection_range(at, at);
            text.set(area.value());
        }
    };
    let gutter = move || {
        marks.with(|marks| {
            (1..=lines.get())
                .map(|line| {
                    let mark = marks.get(&line);
                    let class = match mark {
                        Some(LineMark { bad: true, .. }) => "bad",
                        Some(_) => "doubt",
                        None => "",
                    };
                    view! { <li class=class title=mark.map(|mark| mark.text.clone())>{line}</li> }
                })
                .collect_view()
        })
    };
    let bands = move || {
        marks.with(|marks| {
            marks
                .iter()
                .map(|(line, mark)| {
                    let class = if mark.bad { "bad" } else { "doubt" };
                    view! { <i class=class style=format!("top:{}px", (line - 1) * LINE)></i> }
                })
                .collect_view()
        })
    };
    let shift = move || format!("transform:translateY({}px)", -scrolled.get());
    view! {
        <div class="editor">
            <ol class="editor-gutter" aria-hidden="true"><div style=shift>{gutter}</div></ol>
            <div class="editor-bands" aria-hidden="true"><div style=shift>{bands}</div></div>
            <textarea node_ref=area spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label=label title="Tab indents; Escape, then Tab leaves"
                bind:value=text on:scroll=move |_| scrolled.set(area.get_untracked().map_or(0, |area| area.scroll_top()))
                on:keydown=key></textarea>
        </div>
    }
}

/// Inserts a text where the focus is, as if it were typed, so that the browser can undo it. Returns whether this
/// succeeded.
fn insert(text: &str) -> bool {
    // Deprecated, but nothing else adds to what the browser can undo; web-sys has it for another type.
    let document = document();
    let command = js_sys::Reflect::get(&document, &"execCommand".into());
    let Some(command) = command.ok().and_then(|command| command.dyn_into::<js_sys::Function>().ok()) else {
        return false;
    };
    let inserted = command.call3(&document, &"insertText".into(), &false.into(), &text.into());
    inserted.is_ok_and(|inserted| inserted == true)
}

/// The offset of a line and column, counted from 1 in characters, in UTF-16 units as browsers count.
fn offset(text: &str, line: u32, column: u32) -> u32 {
    let mut at = 0;
    for (index, content) in text.split('\n').enumerate() {
        let units = |text: &str| text.encode_utf16().count();
        if index + 1 == line as usize {
            let before: String = content.chars().take(column.saturating_sub(1) as usize).collect();
            at += units(&before);
            break;
        }
        at += units(content) + 1;
    }
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_as_the_browser_counts() {
        assert_eq!(offset("ab\ncd", 2, 2), 4);
        assert_eq!(offset("\u{1F30A}a\nb", 1, 2), 2);
        assert_eq!(offset("\u{1F30A}a\nb", 2, 1), 4);
    }

    #[test]
    fn a_line_with_a_mistake_is_bad_also_where_it_has_a_warning() {
        let mut mistake = Mistake::new("/nodes/a", "FLOW_INVALID", "no such node");
        mistake.line = Some(3);
        let marks = marks(&[mistake.clone()], &[Mistake { message: "odd".into(), ..mistake }]);
        assert_eq!(marks.get(&3), Some(&LineMark { bad: true, text: "no such node\nodd".into() }));
    }
}
