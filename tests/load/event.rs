//! An event of a watch, read no further than is checked.

/// What happened, as a watch says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// An event, as far as it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) kind: Kind,
    /// The number of the write that made the object's content.
    pub(crate) change: u32,
    /// The version at which it happened.
    pub(crate) version: u32,
}

/// Reads what is checked out of a line. `version_at` is where the version stood in the line before:
/// it mostly stands there again, and a search through each of millions of lines is saved.
pub(crate) fn mark(line: &[u8], version_at: &mut usize) -> Result<Mark, String> {
    let wrong = || format!("not an event of ours: {}", String::from_utf8_lossy(line));
    let kind = match line.get(9) {
        Some(b'A') => Kind::Added,
        Some(b'M') => Kind::Modified,
        Some(b'D') => Kind::Deleted,
        _ => return Err(wrong()),
    };
    let end = line.strip_suffix(b"\"}}}\n").ok_or_else(wrong)?;
    let change = end
        .split_last_chunk::<10>()
        .and_then(|(_, digits)| number(digits));
    const LABEL: &[u8] = b"\"resourceVersion\":\"";
    if !line
        .get(*version_at..)
        .is_some_and(|rest| rest.starts_with(LABEL))
    {
        let found = line.windows(LABEL.len()).position(|window| window == LABEL);
        *version_at = found.ok_or_else(wrong)?;
    }
    let digits = line[*version_at + LABEL.len()..]
        .split(|byte| *byte == b'"')
        .next();
    let version = digits.and_then(number);
    let (change, version) = (change.ok_or_else(wrong)?, version.ok_or_else(wrong)?);
    Ok(Mark {
        kind,
        change,
        version,
    })
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
