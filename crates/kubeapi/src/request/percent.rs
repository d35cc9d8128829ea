//! Percent signs in URLs, resolved once.

/// The bytes that a part of a URL stands for. Nothing, if a percent sign has no two digits behind
/// it.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|d| (d as char).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    Some(bytes)
}
