//! The head of an HTTP/1.1 request or response: a line, and fields. Read strictly.
//!
//! Whatever two readers could understand in two ways is refused: folded lines, a bare CR or LF,
//! spaces before a colon, control characters. A proxy in between then cannot have seen another
//! request than we do.

/// Bytes of a head. A longer one is refused.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Fields in a head. Ours have eight; proxies add some.
const FIELDS_MAX: usize = 64;

/// Something that is not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not HTTP as it should be.
    #[error("not a head of HTTP")]
    Syntax,
    /// It has too many bytes or fields.
    #[error("a head of more than {HEAD_BYTES_MAX} bytes or {FIELDS_MAX} fields")]
    TooLong,
}

/// Where the head ends, if it does: behind the empty line. `searched` bytes were searched before.
pub fn end(bytes: &[u8], searched: usize) -> Result<Option<usize>, Malformed> {
    let from = searched.saturating_sub(END.len() - 1).min(bytes.len());
    let found = bytes[from..]
        .windows(END.len())
        .position(|window| window == END);
    let end = found.map(|at| from + at + END.len());
    match end {
        Some(end) if end <= HEAD_BYTES_MAX => Ok(Some(end)),
        None if bytes.len() < HEAD_BYTES_MAX => Ok(None),
        Some(_) | None => Err(Malformed::TooLong),
    }
}

/// A head in its parts.
#[derive(Debug)]
pub struct Head<'h> {
    /// The first line.
    pub line: &'h str,
    fields: Vec<(&'h str, &'h str)>,
}

impl<'h> Head<'h> {
    /// Reads a head, from its first byte to its empty line.
    pub fn read(bytes: &'h [u8]) -> Result<Self, Malformed> {
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        let text = str::from_utf8(bytes).map_err(|_| Malformed::Syntax)?;
        let text = text.strip_suffix("\r\n\r\n").ok_or(Malformed::Syntax)?;
        let mut lines = text.split("\r\n");
        let line = lines.next().ok_or(Malformed::Syntax)?;
        if !line.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(Malformed::Syntax);
        }
        let mut fields = Vec::new();
        for line in lines {
            if fields.len() == FIELDS_MAX {
                return Err(Malformed::TooLong);
            }
            fields.push(field(line)?);
        }
        Ok(Self { line, fields })
    }

    /// The values of a field, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'h str> {
        self.fields
            .iter()
            .filter(move |(named, _)| named.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The value of a field that may be there once. Two of them are an error, equal or not.
    pub fn one(&self, name: &str) -> Result<Option<&'h str>, Malformed> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Malformed::Syntax),
        }
    }

    /// The values of a field that is a list, wherever its parts stand.
    pub fn list(&self, name: &str) -> impl Iterator<Item = &'h str> {
        self.all(name)
            .flat_map(|value| value.split(','))
            .map(|value| value.trim_matches([' ', '\t']))
    }
}

fn field(line: &str) -> Result<(&str, &str), Malformed> {
    let (name, value) = line.split_once(':').ok_or(Malformed::Syntax)?;
    let value = value.trim_matches([' ', '\t']);
    let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte) || byte >= 0x80;
    if name.is_empty() || !name.bytes().all(is_token) || !value.bytes().all(visible) {
        return Err(Malformed::Syntax);
    }
    Ok((name, value))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const END: &[u8; 4] = b"\r\n\r\n";
