//! A set of entry numbers as ranges, such as `1-812,815`, with which archives list their entries.

use std::collections::BTreeMap;

use crate::json_text::json_text;

/// A set of entry numbers in the audit log, from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryNumbers {
    /// The last number of each range by its first. Ranges neither touch nor overlap.
    ranges: BTreeMap<u64, u64>,
}

impl EntryNumbers {
    /// Whether the set contains a number.
    pub fn has(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, last)| number <= *last)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.add_range(number, number);
    }

    /// Adds all of another set.
    pub fn add_all(&mut self, other: &Self) {
        other.ranges.iter().for_each(|(first, last)| self.add_range(*first, *last));
    }

    /// Iterates over the numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    fn add_range(&mut self, mut first: u64, mut last: u64) {
        // Merges the existing ranges that touch or overlap the new one.
        while let Some((&begin, &end)) = self.ranges.range(..=last.saturating_add(1)).next_back()
            && end.saturating_add(1) >= first
        {
            self.ranges.remove(&begin);
            first = first.min(begin);
            last = last.max(end);
        }
        self.ranges.insert(first, last);
    }
}

impl FromIterator<u64> for EntryNumbers {
    fn from_iter<T: IntoIterator<Item = u64>>(numbers: T) -> Self {
        let mut all = Self::default();
        numbers.into_iter().for_each(|number| all.add(number));
        all
    }
}

impl std::fmt::Display for EntryNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            if first == last { write!(f, "{comma}{first}") } else { write!(f, "{comma}{first}-{last}") }?;
        }
        Ok(())
    }
}

impl std::str::FromStr for EntryNumbers {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = first.parse().ok().zip(last.parse().ok()).filter(|(first, last)| 0 < *first && first <= last);
            let (first, last) =
                range.ok_or_else(|| format!("`{part}` is not a range of numbers from 1, such as 3-7"))?;
            all.add_range(first, last);
        }
        Ok(all)
    }
}

json_text!(EntryNumbers);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let numbers: EntryNumbers = [5, 1, 2, 9, 4, 3].into_iter().collect();
        assert_eq!(numbers.to_string(), "1-5,9");
        assert_eq!((numbers.len(), numbers.has(5), numbers.has(6), numbers.has(9)), (6, true, false, true));
        assert_eq!("1-5,9".parse(), Ok(numbers.clone()));
        let mut all: EntryNumbers = "7-8,20".parse().unwrap();
        all.add_all(&numbers);
        assert_eq!(all.to_string(), "1-5,7-9,20");
        assert_eq!("".parse(), Ok(EntryNumbers::default()));
        for wrong in ["0", "3-2", "x", "1-", "-"] {
            assert!(wrong.parse::<EntryNumbers>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_same_numbers_come_back_whatever_their_order() {
        // The numbers below 97 that are not multiples of three, in a scattered order.
        let scattered: Vec<u64> = (1..97).map(|n| n * 35 % 97).filter(|n| n % 3 != 0).collect();
        let numbers: EntryNumbers = scattered.iter().copied().collect();
        let wanted: BTreeSet<u64> = scattered.into_iter().collect();
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>(), wanted);
        assert_eq!(numbers.to_string().parse(), Ok(numbers));
    }
}
