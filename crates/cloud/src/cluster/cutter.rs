//! A list's bytes -> its items, one at a time, as they come.
//!
//! A list of ten thousand pods is fifty megabytes; what is kept of it here is the value that is
//! being read and the chunk that it came in. The members of the list may stand in any order.

use bytes::{Buf, Bytes, BytesMut};

use super::{Error, ITEM_BYTES_MAX};

/// What is cut out of a list.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// An item.
    Item(Bytes),
    /// The list's own metadata.
    Metadata(Bytes),
    /// The list is over.
    End,
}

/// Cuts one list.
#[derive(Debug, Default)]
pub struct Cutter {
    buffer: BytesMut,
    place: Place,
    value: Value,
}

/// What comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The list's opening brace.
    #[default]
    Open,
    /// A key of the list, or its closing brace if it is empty.
    FirstKey,
    /// A key of the list.
    Key,
    /// The colon after a key.
    Colon(Key),
    /// The value of a key.
    Value(Key),
    /// A comma, or the closing brace.
    Comma,
    /// An item, or the closing bracket if there is none.
    FirstItem,
    /// An item.
    Item,
    /// A comma between items, or the closing bracket.
    ItemComma,
    /// Nothing but white space.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Items,
    Metadata,
    Other,
}

/// How far a value was scanned, from the start of the buffer.
#[derive(Debug, Default)]
struct Value {
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Cutter {
    /// Takes in what came.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next piece that is whole; nothing before more has come.
    pub fn piece(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            let space = self
                .buffer
                .iter()
                .take_while(|byte| is_space(**byte))
                .count();
            // Within a value nothing is skipped: it begins with what is none.
            if self.value.scanned == 0 {
                self.buffer.advance(space);
            }
            let Some(&byte) = self.buffer.first() else {
                return Ok(None);
            };
            match self.place {
                Place::FirstItem if byte == b']' => self.step(Place::Comma),
                Place::FirstKey if byte == b'}' => return Ok(Some(self.end())),
                Place::Open => self.expect(byte, b'{', Place::FirstKey)?,
                Place::Colon(key) => self.expect(byte, b':', Place::Value(key))?,
                Place::Value(Key::Items) if byte == b'[' && self.value.scanned == 0 => {
                    self.step(Place::FirstItem);
                }
                Place::Comma if byte == b'}' => return Ok(Some(self.end())),
                Place::Comma => self.expect(byte, b',', Place::Key)?,
                Place::ItemComma if byte == b']' => self.step(Place::Comma),
                Place::ItemComma => self.expect(byte, b',', Place::Item)?,
                Place::End => return Err(MALFORMED),
                place => {
                    let Some(value) = self.value()? else {
                        return Ok(None);
                    };
                    if let Some(piece) = self.take(place, value)? {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// What a whole value means where it stands.
    fn take(&mut self, place: Place, value: Bytes) -> Result<Option<Piece>, Error> {
        let (next, piece) = match place {
            Place::FirstKey | Place::Key => (Place::Colon(key(&value)?), None),
            Place::Value(Key::Metadata) => (Place::Comma, Some(Piece::Metadata(value))),
            // An empty list may be null.
            Place::Value(Key::Items) if &value[..] != b"null" => return Err(MALFORMED),
            Place::Value(_) => (Place::Comma, None),
            Place::FirstItem | Place::Item if value.first() == Some(&b'{') => {
                (Place::ItemComma, Some(Piece::Item(value)))
            }
            _ => return Err(MALFORMED),
        };
        self.place = next;
        Ok(piece)
    }

    fn expect(&mut self, found: u8, wanted: u8, next: Place) -> Result<(), Error> {
        if found != wanted {
            return Err(MALFORMED);
        }
        self.step(next);
        Ok(())
    }

    fn step(&mut self, next: Place) {
        self.buffer.advance(1);
        self.place = next;
    }

    fn end(&mut self) -> Piece {
        self.step(Place::End);
        Piece::End
    }

    /// The value at the start of the buffer, once all of it has come.
    fn value(&mut self) -> Result<Option<Bytes>, Error> {
        let end = self.value.end(&self.buffer)?;
        match end {
            Some(end) => {
                self.value = Value::default();
                Ok(Some(self.buffer.split_to(end).freeze()))
            }
            None if self.value.scanned > ITEM_BYTES_MAX => {
                let max = ITEM_BYTES_MAX;
                Err(Error::TooLarge { max })
            }
            None => Ok(None),
        }
    }
}

impl Value {
    /// Where the value ends, if that has come.
    fn end(&mut self, buffer: &[u8]) -> Result<Option<usize>, Error> {
        for (at, &byte) in buffer.iter().enumerate().skip(self.scanned) {
            self.scanned = at + 1;
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Ok(Some(at + 1));
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 1 => return Ok(Some(at + 1)),
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                // A number or a word ends where something else begins.
                b',' | b'}' | b']' | b':' if self.depth == 0 && at > 0 => return Ok(Some(at)),
                b',' | b'}' | b']' | b':' if self.depth == 0 => return Err(MALFORMED),
                byte if is_space(byte) && self.depth == 0 => return Ok(Some(at)),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn key(value: &[u8]) -> Result<Key, Error> {
    match value {
        b"\"items\"" => Ok(Key::Items),
        b"\"metadata\"" => Ok(Key::Metadata),
        [b'"', ..] => Ok(Key::Other),
        _ => Err(MALFORMED),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const MALFORMED: Error = Error::Malformed("not a list of objects");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &[u8], chunk: usize) -> Result<Vec<Piece>, Error> {
        let mut cutter = Cutter::default();
        let mut pieces = Vec::new();
        for chunk in text.chunks(chunk.max(1)) {
            cutter.push(chunk);
            while let Some(piece) = cutter.piece()? {
                pieces.push(piece);
            }
        }
        Ok(pieces)
    }

    fn item(text: &str) -> Piece {
        Piece::Item(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn metadata(text: &str) -> Piece {
        Piece::Metadata(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn items_are_cut_out_wherever_chunks_end() {
        let one = r#"{"a":"}]\\\"{[","b":[1,{"c":null}]}"#;
        let two = r#"{"metadata":{"items":[{}]}}"#;
        let text = format!(
            "{{ \"kind\" : \"PodList\",\"metadata\":{{\"resourceVersion\":\"7\"}}, \"n\":-1.5e3,\n\
             \"t\": true ,\"items\":[ {one} ,{two}\n] , \"more\":[[],{{}}]}}\n"
        );
        let expected = [
            metadata(r#"{"resourceVersion":"7"}"#),
            item(one),
            item(two),
            Piece::End,
        ];
        for chunk in 1..=text.len() {
            assert_eq!(cut(text.as_bytes(), chunk).unwrap(), expected, "{chunk}");
        }
    }

    #[test]
    fn metadata_may_come_last_and_items_may_be_none() {
        let pieces = cut(br#"{"items":[],"metadata":{}}"#, 3).unwrap();
        assert_eq!(pieces, [metadata("{}"), Piece::End]);
        assert_eq!(cut(br#"{"items":null}"#, 3).unwrap(), [Piece::End]);
        assert_eq!(cut(b"{}", 1).unwrap(), [Piece::End]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "[]",
            "{]",
            r#"{"items":{}}"#,
            r#"{"items":[1]}"#,
            r#"{"items":[{},]}"#,
            r#"{"items" []}"#,
            r#"{"a":,"b":1}"#,
            "{} {}",
            r#"{1:2}"#,
            r#"{"a":1,}"#,
        ] {
            assert!(cut(text.as_bytes(), 4).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_that_ends_early_has_no_end() {
        let pieces = cut(br#"{"items":[{"a":1},{"b""#, 5).unwrap();
        assert_eq!(pieces, [item(r#"{"a":1}"#)]);
    }

    #[test]
    fn an_item_that_never_ends_is_refused_at_the_limit() {
        let mut cutter = Cutter::default();
        cutter.push(br#"{"items":[{"a":""#);
        let chunk = vec![b'x'; 64 * 1024];
        let mut taken = 0;
        let refused = loop {
            cutter.push(&chunk);
            taken += chunk.len();
            match cutter.piece() {
                Ok(None) => {}
                other => break other,
            }
        };
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        assert!(taken <= ITEM_BYTES_MAX + 2 * chunk.len());
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_pieces_or_an_error(
            bytes in prop::collection::vec(prop::sample::select(&b"{}[]\":,\\ 1i"[..]), 0..60),
            chunk in 1usize..9,
        ) {
            let whole = cut(&bytes, bytes.len());
            let parts = cut(&bytes, chunk);
            prop_assert_eq!(whole.is_ok(), parts.is_ok());
            if let (Ok(whole), Ok(parts)) = (whole, parts) {
                prop_assert_eq!(whole, parts);
            }
        }

        #[test]
        fn the_items_of_a_list_are_what_serde_reads(
            names in prop::collection::vec("[a-z\"\\\\{}\\[\\]é]{0,9}", 0..9),
            chunk in 1usize..40,
        ) {
            let items: Vec<_> = names.iter().map(|name| serde_json::json!({"n": name})).collect();
            let text = serde_json::json!({"items": items, "metadata": {}}).to_string();
            let pieces = cut(text.as_bytes(), chunk).unwrap();
            let cut: Vec<serde_json::Value> = pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Item(bytes) => Some(serde_json::from_slice(bytes).unwrap()),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(cut, items);
        }
    }
}
