//! The filter of the list in the URL: `?severity=critical&assigned=me&q=refund`.

use shared::api::ReviewQuery;
use shared::id::ReviewId;

use crate::state::filter;

/// The query parameters that make up a filter.
const PARTS: [&str; 10] = ["assigned", "due", "severity", "kind", "flow", "role", "tag", "irreversible", "age", "q"];

/// The path of the page on which the selected reviews are decided.
pub const SELECTED: &str = "/inbox/selected";

/// The review at a path of the console, such as `/reviews/{id}`; `None` for other paths.
pub fn review_at(path: &str) -> Option<ReviewId> {
    path.strip_prefix("/reviews/")?.parse().ok()
}

/// The address of a review beside the list with the filter `search`, with or without the question mark.
pub fn review(id: ReviewId, search: &str) -> String {
    let search = search.trim_start_matches('?');
    let mark = if search.is_empty() { "" } else { "?" };
    format!("/reviews/{id}{mark}{search}")
}

/// Like [`review`], from the page at `path`: only the list and the reviews beside it have its filter in their addresses.
pub fn review_from(path: &str, search: &str, id: ReviewId) -> String {
    let has_filter = path.starts_with("/inbox") || path.starts_with("/reviews/");
    review(id, if has_filter { search } else { "" })
}

/// Reads the filter of the list from query parameters. Unknown parameters and invalid values are ignored.
pub fn read<'a, N: AsRef<str>>(parts: impl IntoIterator<Item = (N, &'a str)>) -> ReviewQuery {
    filter::read(parts.into_iter().filter(|(name, _)| PARTS.contains(&name.as_ref())))
}

#[cfg(test)]
mod tests {
    use shared::client::query_string;

    use super::*;
    use crate::state::filter::{part, with};

    #[test]
    fn a_filter_is_what_its_address_says() {
        let parts = [("severity", "critical"), ("due", "30m"), ("irreversible", "true"), ("q", "two words")];
        let query = read(parts);
        assert_eq!(query_string(&query), "?severity=critical&due=30m&irreversible=true&q=two%20words");
        for (name, value) in parts {
            assert_eq!(part(&query, name).as_deref(), Some(value));
        }
        assert_eq!(with(&query, "q", None), read(parts[..3].iter().copied()));
    }

    #[test]
    fn a_review_is_opened_beside_the_list_as_it_is_filtered() {
        let id = "018f0000-0000-7000-8000-000000000001".parse().unwrap();
        let path = format!("/reviews/{id}");
        assert_eq!(review(id, ""), path);
        assert_eq!(review(id, "q=a"), format!("{path}?q=a"));
        assert_eq!(review(id, "?q=a"), format!("{path}?q=a"));
        assert_eq!(review_at(&path), Some(id));
        for list in ["/inbox", SELECTED, &path] {
            assert_eq!(review_from(list, "q=a", id), format!("{path}?q=a"), "{list}");
        }
        assert_eq!(review_from("/audit", "q=a", id), path, "the filter of the audit log");
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(
            read([("severity", "huge"), ("due", "soon"), ("cursor", "x"), ("status", "resolved")]),
            ReviewQuery::default()
        );
        assert_eq!(read([("q", "  "), ("flow", "mail"), ("age", "x")]), read([("flow", "mail")]));
        assert_eq!(read([("irreversible", "perhaps")]), ReviewQuery::default());
    }
}
