//! Pages of lists, and the cursors that lead from one to the next.
//!
//! For clients, a cursor is opaque. It contains the place where the page ended, and the name of the list. A cursor of
//! another list is refused, because its page would look right but lack rows.

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Deserialize;
use shared::api::Page;
use shared::error::Problem;
use shared::time::Timestamp;

use super::body;
use crate::problem::unknown_cursor;

/// A page of any list without a filter.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Paging {
    /// The most rows of the page.
    pub limit: Option<u32>,
    /// The cursor at which the page begins.
    pub cursor: Option<String>,
}

/// A list, identified by the name in its cursors.
#[derive(Debug, Clone, Copy)]
pub(super) struct List(pub &'static str);

impl List {
    /// Decodes a client's cursor to a place in this list; `None` if there is no cursor.
    pub fn place(self, cursor: Option<String>) -> Result<Option<String>, Problem> {
        let Some(cursor) = cursor else { return Ok(None) };
        let inside = BASE64.decode(&cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let place = inside.as_deref().and_then(|text| text.strip_prefix(self.0)?.strip_prefix(' '));
        place.map(|place| Some(place.to_owned())).ok_or_else(unknown_cursor)
    }

    /// Encodes the place in `next_cursor` as a cursor for clients.
    pub fn page<T>(self, page: Page<T>) -> Page<T> {
        let next_cursor = page.next_cursor.map(|place| BASE64.encode(format!("{} {place}", self.0)));
        Page { next_cursor, ..page }
    }

    /// Returns a page of a list that was read as a whole, newest first, by time and id. A page follows the previous one
    /// correctly even if the last row of that page is gone.
    pub fn newest<T, I: Display>(
        self,
        items: Vec<T>,
        paging: Paging,
        made: impl Fn(&T) -> (Timestamp, I),
    ) -> Result<Page<T>, Problem> {
        let key = |item: &T| {
            let (Timestamp(at), id) = made(item);
            format!("{at:020}.{id}")
        };
        self.cut(items, paging, key, true)
    }

    /// Returns a page of a list that was read as a whole, ordered by name.
    pub fn by_name<T>(self, items: Vec<T>, paging: Paging, name: impl Fn(&T) -> String) -> Result<Page<T>, Problem> {
        self.cut(items, paging, name, false)
    }

    fn cut<T>(self, items: Vec<T>, paging: Paging, key: impl Fn(&T) -> String, down: bool) -> Result<Page<T>, Problem> {
        let limit = body::limit(paging.limit)? as usize;
        let place = self.place(paging.cursor)?;
        let mut keyed: Vec<(String, T)> = items.into_iter().map(|item| (key(&item), item)).collect();
        keyed.sort_by(|(one, _), (other, _)| if down { other.cmp(one) } else { one.cmp(other) });
        keyed.retain(|(key, _)| place.as_ref().is_none_or(|place| if down { key < place } else { key > place }));
        let more = keyed.len() > limit;
        keyed.truncate(limit);
        let next_cursor = keyed.last().filter(|_| more).map(|(key, _)| key.clone());
        let items = keyed.into_iter().map(|(_, item)| item).collect();
        Ok(self.page(Page { items, next_cursor }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: List = List("names");

    fn page(names: &[&str], limit: u32, cursor: Option<&str>) -> Result<Page<String>, Problem> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        NAMES.by_name(names, Paging { limit: Some(limit), cursor: cursor.map(str::to_owned) }, Clone::clone)
    }

    #[test]
    fn the_next_page_begins_behind_the_last_also_where_its_last_row_is_gone() {
        let first = page(&["b", "a", "c", "d"], 2, None).unwrap();
        assert_eq!(first.items, ["a", "b"]);
        let next = first.next_cursor.unwrap();
        assert_eq!(page(&["a", "b", "c", "d"], 2, Some(&next)).unwrap().items, ["c", "d"]);
        assert_eq!(page(&["a", "c", "d"], 2, Some(&next)).unwrap().items, ["c", "d"]);
        assert_eq!(page(&["a", "b"], 2, Some(&next)).unwrap().items, [""; 0]);
        let made = vec![(7, "a"), (12, "b"), (7, "c")];
        let newest = NAMES.newest(made, Paging { limit: Some(2), cursor: None }, |(at, id)| (Timestamp(*at), *id));
        assert_eq!(newest.unwrap().items, [(12, "b"), (7, "c")]);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let next = page(&["a", "b"], 1, None).unwrap().next_cursor.unwrap();
        let other = List("others").place(Some(next.clone())).unwrap_err();
        assert_eq!((other.status, other.errors[0].path.as_str()), (422, "/cursor"));
        for garbage in ["", "a", "💥", "names a", &next[1..]] {
            assert_eq!(page(&["a"], 1, Some(garbage)).unwrap_err().status, 422, "{garbage}");
        }
    }
}
