//! "Did you mean …?"

/// The maximum number of names that are compared.
const MAX_NAMES: usize = 500;
/// The maximum length of names that are compared, in characters.
const MAX_LENGTH: usize = 100;

/// Returns `; did you mean …?` with the most similar name. Empty if no name is similar.
pub fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if length > MAX_LENGTH {
        return None;
    }
    let simple = |name: &str| name.to_lowercase().replace('-', "_");
    let written = simple(written);
    names
        .into_iter()
        .take(MAX_NAMES)
        .map(|name| (name, name.chars().count()))
        .filter(|(_, other)| *other <= MAX_LENGTH)
        .map(|(name, other)| (strsim::osa_distance(&written, &simple(name)), length.max(other), name))
        .filter(|(distance, longer, _)| *distance <= 1.max(longer / 3))
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., name)| name)
}
