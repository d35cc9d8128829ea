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

/// Reads events out of a watch's body as it comes, in whatever pieces.
#[derive(Default)]
pub(crate) struct Events {
    partial: Vec<u8>,
    version_at: usize,
}

impl Events {
    /// Hands on each event that is whole now, until one is refused.
    pub(crate) fn take<E: From<String>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Mark) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !piece.ends_with(b"\n") {
                self.partial.extend_from_slice(piece);
                continue;
            }
            let mark = match self.partial.is_empty() {
                true => mark(piece, &mut self.version_at)?,
                false => {
                    self.partial.extend_from_slice(piece);
                    let line = std::mem::take(&mut self.partial);
                    mark(&line, &mut self.version_at)?
                }
            };
            each(mark)?;
        }
        Ok(())
    }
}

/// Reads what is checked out of a line. `version_at` is where the version stood in the line before:
/// it mostly stands there again, and a search through each of millions of lines is saved.
fn mark(line: &[u8], version_at: &mut usize) -> Result<Mark, String> {
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
