//! Places in a document: JSON pointers (RFC 6901), and indices into lists.

use super::{BadJsonPatch, NotThere};

/// Which end of an operation with two places a pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Where the value comes from.
    From,
    /// Where it goes, or the only place there is.
    To,
}

/// A JSON pointer (RFC 6901).
pub(super) struct Pointer<'a> {
    pub(super) text: &'a str,
}

impl<'a> Pointer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// The parts, their escapes resolved. A pointer that does not start with a slash has none, and
    /// is found to lead nowhere.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = String> + use<'a> {
        let text = self.text.strip_prefix('/');
        let parts = text.map(|text| text.split('/')).into_iter().flatten();
        parts.map(|part| part.replace("~1", "/").replace("~0", "~"))
    }

    /// The last part; none for the pointer to the whole document.
    pub(super) fn last(&self) -> Option<String> {
        match self.text {
            "" => None,
            _ => Some(self.parts().next_back().unwrap_or_default()),
        }
    }

    pub(super) fn before_last(&self) -> Option<impl Iterator<Item = String> + use<'a>> {
        let count = self.parts().count();
        Some(self.parts().take(count.checked_sub(1)?))
    }

    /// That the value which the place is in is not there, in the words of each operation.
    pub(super) fn missing(&self, operation: &'static str, end: End) -> BadJsonPatch {
        let text = self.text;
        let what = match (operation, end) {
            ("add" | "remove", _) => format!("doc is missing path: \"{text}\""),
            ("test", _) => format!("is missing path: {text}"),
            ("move" | "copy", End::From) => format!("doc is missing from path: {text}"),
            ("move" | "copy", End::To) => format!("doc is missing destination path: {text}"),
            _ => format!("doc is missing path: {text}"),
        };
        BadJsonPatch::Missing { operation, what }
    }

    /// That the value which the place is in has no such place.
    pub(super) fn wrong(
        &self,
        operation: &'static str,
        end: End,
        reason: NotThere,
    ) -> BadJsonPatch {
        let text = self.text;
        let at = match (operation, end) {
            ("copy", End::From) => format!("error in copy for from: '{text}'"),
            ("copy", End::To) => "error while adding value during copy".to_owned(),
            ("move", End::From) => {
                format!(
                    "error in move for path: '{}'",
                    self.last().unwrap_or_default()
                )
            }
            _ => format!("error in {operation} for path: '{text}'"),
        };
        BadJsonPatch::NotThere { at, reason }
    }
}

/// The place that an index means in a list of so many; a negative one counts from the end.
pub(super) fn position(index: &str, length: usize) -> Result<usize, NotThere> {
    let digits = index.strip_prefix('-').unwrap_or(index);
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let not_an_index = || NotThere::NotAnIndex(index.to_owned());
    let number: i64 = match canonical {
        true => index.parse().map_err(|_| not_an_index())?,
        false => return Err(not_an_index()),
    };
    let from_start = match number {
        0.. => usize::try_from(number).ok(),
        _ => usize::try_from(number.unsigned_abs())
            .ok()
            .and_then(|back| length.checked_sub(back)),
    };
    from_start
        .filter(|at| *at < length)
        .ok_or(NotThere::Index(number))
}
