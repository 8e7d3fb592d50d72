//! The saved views of the inbox, while a person changes them.

use shared::client::query_string;
use shared::id::Username;
use shared::inbox::{ReviewOrder, ReviewQuery};
use shared::saved_view::{MAX_VIEW_NAME, MAX_VIEWS, SavedView};

/// The key under which the browser stores a person's views.
pub fn storage_key(owner: &Username) -> String {
    format!("countersign.views.{owner}")
}

/// The key under which the browser stores the [`first_query`] of the person who used it last: `index.html` reads it
/// before anybody knows who is logged in.
pub const FIRST_QUERY: &str = "countersign.first-query";

/// The number of rows to request before the socket is open: those in sight. `index.html` requests as many.
pub const FIRST: u32 = 20;

/// The query with which the list of the default view is first requested; `None` without a default view:
/// `index.html` has the query of all reviews.
pub fn first_query(views: &[SavedView]) -> Option<String> {
    let filter = default_filter(views)?.clone();
    let query = query_string(&ReviewQuery { order: Some(ReviewOrder::Urgency), limit: Some(FIRST), ..filter });
    Some(query.trim_start_matches('?').to_owned())
}

/// Adds a view at the end; fails with what is wrong with it. As the default, it takes the place of the one before.
pub fn with(views: &[SavedView], name: &str, filter: &ReviewQuery, default: bool) -> Result<Vec<SavedView>, String> {
    if views.len() >= MAX_VIEWS {
        return Err(format!("At most {MAX_VIEWS} views can be saved. Remove one first."));
    }
    let mut all = views.to_vec();
    if default {
        for view in &mut all {
            view.default = false;
        }
    }
    all.push(SavedView { name: name.trim().to_owned(), filter: filter.clone(), default });
    match wrong_name(&all, all.len() - 1) {
        Some(wrong) => Err(wrong),
        None => Ok(all),
    }
}

/// What is wrong with the name of a view, if anything.
pub fn wrong_name(views: &[SavedView], index: usize) -> Option<String> {
    let name = views.get(index)?.name.trim();
    let is_same =
        |(at, other): (usize, &SavedView)| at != index && other.name.trim().to_lowercase() == name.to_lowercase();
    if name.is_empty() {
        Some("A view needs a name.".to_owned())
    } else if name.chars().count() > MAX_VIEW_NAME {
        Some(format!("At most {MAX_VIEW_NAME} characters."))
    } else {
        views.iter().enumerate().any(is_same).then(|| format!("Another view is called “{name}”."))
    }
}

/// Whether this filter can be saved: it is one, and no view has it.
pub fn is_new(views: &[SavedView], filter: &ReviewQuery) -> bool {
    *filter != ReviewQuery::default() && views.iter().all(|view| view.filter != *filter)
}

/// The filter that the inbox opens with, if any.
pub fn default_filter(views: &[SavedView]) -> Option<&ReviewQuery> {
    views.iter().find(|view| view.default).map(|view| &view.filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(q: &str) -> ReviewQuery {
        ReviewQuery { q: Some(q.to_owned()), ..ReviewQuery::default() }
    }

    #[test]
    fn a_view_is_added_under_a_name_of_its_own() {
        let one = with(&[], " Mine ", &filter("a"), true).unwrap();
        assert_eq!((one[0].name.as_str(), one[0].default), ("Mine", true));
        assert!(with(&one, "mine", &filter("b"), false).unwrap_err().contains("Another view"));
        assert!(with(&one, "  ", &filter("b"), false).is_err());
        assert!(with(&one, &"x".repeat(61), &filter("b"), false).is_err());
        let two = with(&one, "Other", &filter("b"), true).unwrap();
        assert_eq!(default_filter(&two), Some(&filter("b")), "there is one default");
        assert_eq!(two.iter().filter(|view| view.default).count(), 1);
        let many: Vec<SavedView> =
            (0..MAX_VIEWS).map(|number| SavedView { name: number.to_string(), ..SavedView::default() }).collect();
        assert!(with(&many, "One more", &filter("c"), false).is_err());
    }

    #[test]
    fn the_first_request_is_that_of_the_default_view() {
        let page = include_str!("../../index.html");
        let all = [SavedView { default: true, ..SavedView::default() }];
        for part in [first_query(&all).unwrap().as_str(), FIRST_QUERY] {
            assert!(page.contains(&format!("\"{part}\"")), "{part}");
        }
        let views = with(&with(&[], "Mine", &filter("a"), true).unwrap(), "Other", &filter("b"), false).unwrap();
        let query = first_query(&views).unwrap();
        assert!(query.contains("q=a") && !query.contains("q=b"), "{query}");
        assert_eq!(first_query(&with(&[], "Mine", &filter("a"), false).unwrap()), None);
    }

    #[test]
    fn only_a_filter_that_no_view_has_can_be_saved() {
        let views = with(&[], "Mine", &filter("a"), false).unwrap();
        assert!(!is_new(&views, &ReviewQuery::default()) && !is_new(&views, &filter("a")));
        assert!(is_new(&views, &filter("b")));
        assert_eq!(default_filter(&views), None);
    }
}
