//! Compares the entries of a range with their seal, and returns the first difference.

use shared::seal::Tampering;

use super::seal::Hash;

/// The first difference between sealed and found entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Difference {
    /// The index of the difference, from 0.
    pub at: usize,
    /// `Changed`, `Removed`, `Added` or `Reordered`, as far as the hashes tell.
    pub what: Tampering,
}

/// Compares sealed hashes with the hashes that were found. Returns the first difference, if there is one.
pub(super) fn compare(sealed: &[Hash], found: &[Hash]) -> Option<Difference> {
    let at = sealed.iter().zip(found).take_while(|(sealed, found)| sealed == found).count();
    let what = match (sealed.get(at), found.get(at)) {
        (None, None) => return None,
        (Some(_), None) => Tampering::Removed,
        (None, Some(_)) => Tampering::Added,
        (Some(wanted), Some(there)) => match (found[at..].contains(wanted), sealed[at..].contains(there)) {
            (true, true) => Tampering::Reordered,
            (true, false) => Tampering::Added,
            (false, true) => Tampering::Removed,
            (false, false) => Tampering::Changed,
        },
    };
    Some(Difference { at, what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hashes(of: std::ops::Range<u8>) -> Vec<Hash> {
        of.map(|byte| [byte; 32]).collect()
    }

    proptest! {
        #[test]
        fn every_difference_is_found_where_it_is_and_called_what_it_is(length in 1_u8..40, place in 0_usize..40, other in 0_usize..40) {
            let sealed = hashes(0..length);
            let at = place % sealed.len();
            let changed = |what: Tampering, change: &dyn Fn(&mut Vec<Hash>)| {
                let mut found = sealed.clone();
                change(&mut found);
                (compare(&sealed, &found), Some(Difference { at, what }))
            };
            let (found, wanted) = changed(Tampering::Changed, &|found| found[at] = [255; 32]);
            prop_assert_eq!(found, wanted);
            let (found, wanted) = changed(Tampering::Removed, &|found| { found.remove(at); });
            prop_assert_eq!(found, wanted);
            let (found, wanted) = changed(Tampering::Added, &|found| found.insert(at, [255; 32]));
            prop_assert_eq!(found, wanted);
            let other = other % sealed.len();
            if at < other {
                let (found, wanted) = changed(Tampering::Reordered, &|found| found.swap(at, other));
                prop_assert_eq!(found, wanted);
            }
            prop_assert_eq!(compare(&sealed, &sealed), None);
        }
    }
}
