//! "Did you mean …?"

/// `; did you mean …?` with the name that is most like what was written, or nothing where none is like it.
pub fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 100;
    let simple = |name: &str| name.to_lowercase().replace('-', "_");
    let written = simple(written);
    let length = written.chars().count();
    if length > LONGEST {
        return None;
    }
    names
        .into_iter()
        .map(|name| (distance(&written, &simple(name)), name))
        .filter(|(distance, name)| *distance <= 1.max(length.max(name.chars().count()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters must be put in, left out, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
