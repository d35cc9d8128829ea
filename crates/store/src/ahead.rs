//! Reading rows that lie side by side at once: after a compaction they all do, by name.

use bytes::Bytes;

use crate::disk::File;
use crate::row::{At, Row};

/// Bytes that are read at once.
const RUN_BYTES_MAX: u64 = 64 * 1024;
/// Bytes between two rows that are read for nothing: what stands between rows of one commit.
const GAP_BYTES_MAX: u64 = 1024;

/// What was read beyond what was asked for.
#[derive(Default)]
pub struct Ahead {
    file: u32,
    offset: u64,
    bytes: Bytes,
}

impl Ahead {
    /// The bytes of a row, if they are here.
    pub(crate) fn cut(&self, row: &Row, at: At) -> Option<Bytes> {
        let start = at.offset.checked_sub(self.offset)?;
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(at.length(row.bytes_len()) as usize)?;
        (at.file == self.file && end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }

    /// Reads a run of rows. Nothing is here afterwards if that failed: each row alone will tell
    /// why.
    pub(crate) fn read(&mut self, file: &dyn File, at: At, length: u64) {
        let mut buffer = vec![0; length as usize];
        let read = file.read_at(&mut buffer, at.offset);
        *self = match read {
            Ok(()) => Self {
                file: at.file,
                offset: at.offset,
                bytes: buffer.into(),
            },
            Err(_) => Self::default(),
        };
    }
}

/// How many bytes the rows take that lie side by side from the first of these places on.
pub(crate) fn run_length<'a>(mut places: impl Iterator<Item = (At, &'a Row)>) -> u64 {
    let end_of = |(at, row): (At, &Row)| at.offset + at.length(row.bytes_len());
    let Some(first) = places.next() else {
        return 0;
    };
    let start = first.0;
    let mut end = end_of(first);
    for next in places {
        let (at, next_end) = (next.0, end_of(next));
        let beside = at.file == start.file && at.offset >= end && at.offset - end <= GAP_BYTES_MAX;
        if !beside || next_end - start.offset > RUN_BYTES_MAX {
            break;
        }
        end = next_end;
    }
    end - start.offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Form;
    use object::{Header, Resource};

    fn row(offset: u64, bytes: u32) -> Row {
        let text = br#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}"#;
        let header = Header::parse(&Resource::new("", "pods"), text, &[]).unwrap();
        let (file, form) = (1, Form::Plain);
        Row::new(header, At { file, offset, form }, bytes, 0)
    }

    fn length(rows: &[Row]) -> u64 {
        run_length(rows.iter().map(|row| (row.at(), row)))
    }

    #[test]
    fn a_run_ends_at_a_gap_at_a_step_back_and_when_it_is_long_enough() {
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[row(100, 50)]), 50);
        assert_eq!(length(&[row(100, 50), row(160, 40)]), 100);
        assert_eq!(length(&[row(100, 50), row(150 + 1025, 40)]), 50);
        assert_eq!(length(&[row(100, 50), row(90, 5)]), 50);
        let many: Vec<Row> = (0..100).map(|number| row(number * 1000, 1000)).collect();
        assert_eq!(length(&many), 65_000);
        assert_eq!(length(&[row(0, 900_000), row(900_000, 10)]), 900_000);
    }

    #[test]
    fn only_what_was_read_is_cut_out() {
        let ahead = Ahead {
            file: 1,
            offset: 100,
            bytes: Bytes::from_static(b"0123456789"),
        };
        let cut = |offset, bytes| {
            let row = row(offset, bytes);
            ahead.cut(&row, row.at())
        };
        assert_eq!(cut(102, 3).as_deref(), Some(&b"234"[..]));
        assert_eq!(cut(100, 10).as_deref(), Some(&b"0123456789"[..]));
        assert_eq!((cut(99, 2), cut(109, 2), cut(200, 1)), (None, None, None));
    }
}
