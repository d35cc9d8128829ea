//! Bytes of objects on their way: whole, packed, or as the difference from what the node has.
//!
//! Nothing is kept from one to the next. A difference is made from a base that both sides have, and
//! its hash says whether that was so; one difference serves every node that has the base.

use bytes::Bytes;
use object::ObjectName;
use object::Version;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text, put_version};
use object::header::OBJECT_BYTES_MAX;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat};

use crate::digest::content_hash;

/// Bytes that are sent, and what comes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// How they are sent.
    pub form: Form,
    /// How many bytes come of them.
    pub length: usize,
    /// The hash of what comes of them.
    pub hash: u64,
    /// What is sent.
    pub bytes: Bytes,
}

/// How bytes are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Plain,
    /// Packed.
    Packed,
    /// Packed, as the difference from the object itself at another version.
    Difference(Base),
    /// Packed, as the difference from another object of the resource.
    Like(ObjectName, Base),
    /// Not at all: the receiver has them.
    Known,
}

/// What a difference is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The version of the object.
    pub version: Version,
    /// The hash of its bytes.
    pub hash: u64,
}

/// Why nothing came of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The base is not there, or it is another one. The whole is needed.
    #[error("the base of the difference is not here")]
    NoBase,
    /// What came of it is not what it should be. The whole is needed.
    #[error("what came of it is not what was sent")]
    Different,
    /// More than any object has.
    #[error("larger than any object")]
    TooLarge,
}

impl Content {
    /// Bytes in the form that takes least: from a base if there is one, else packed or as they are.
    pub fn new(bytes: &Bytes, base: Option<(Form, &[u8])>) -> Self {
        let alone = || match bytes.len() >= PACKED_FROM {
            true => Some((Form::Packed, pack(bytes, &[])?)),
            false => None,
        };
        let packed = match base {
            Some((form @ Form::Like(..), like)) => {
                // What is no help is not named.
                let alone = alone();
                let least = alone
                    .as_ref()
                    .map_or(bytes.len(), |(_, packed)| packed.len());
                let helps = pack(bytes, like).filter(|it| it.len() + NAMED_BYTES < least);
                helps.map(|packed| (form, packed)).or(alone)
            }
            Some((form, base)) => pack(bytes, base).map(|packed| (form, packed)),
            None => alone(),
        };
        let (form, sent) = match packed.filter(|(_, packed)| packed.len() < bytes.len()) {
            Some((form, packed)) => (form, packed.into()),
            None => (Form::Plain, bytes.clone()),
        };
        Self {
            form,
            length: bytes.len(),
            hash: content_hash(bytes),
            bytes: sent,
        }
    }

    /// What comes of it. `find` gives the bytes of what it is made from.
    pub fn open(&self, find: impl FnOnce(&Form) -> Option<Bytes>) -> Result<Bytes, Unusable> {
        if self.length > OBJECT_BYTES_MAX {
            return Err(Unusable::TooLarge);
        }
        let base = match &self.form {
            Form::Plain | Form::Packed => Bytes::new(),
            Form::Known => find(&self.form).ok_or(Unusable::NoBase)?,
            Form::Difference(base) | Form::Like(_, base) => {
                let found = find(&self.form).filter(|found| content_hash(found) == base.hash);
                found.ok_or(Unusable::NoBase)?
            }
        };
        let opened = match self.form {
            Form::Plain => self.bytes.clone(),
            Form::Known => base,
            _ => unpack(&self.bytes, &base, self.length)
                .ok_or(Unusable::Different)?
                .into(),
        };
        match opened.len() == self.length && content_hash(&opened) == self.hash {
            true => Ok(opened),
            false => Err(Unusable::Different),
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let base = |out: &mut Vec<u8>, base: &Base| {
            put_version(out, Some(&base.version));
            out.extend_from_slice(&base.hash.to_le_bytes());
        };
        match &self.form {
            Form::Plain => put_number(out, 0),
            Form::Packed => put_number(out, 1),
            Form::Difference(from) => {
                put_number(out, 2);
                base(out, from);
            }
            Form::Like(name, from) => {
                put_number(out, 3);
                put_text(out, name.as_str());
                base(out, from);
            }
            Form::Known => put_number(out, 4),
        }
        put_number(out, self.length as u64);
        out.extend_from_slice(&self.hash.to_le_bytes());
        put_bytes(out, &self.bytes);
    }

    /// Takes it. What it claims is believed only when it is opened.
    pub fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let base = |taker: &mut Taker<'_>| -> Result<Base, Malformed> {
            let version = taker.version()?.ok_or(Malformed)?;
            let hash = u64::from_le_bytes(taker.exactly()?);
            Ok(Base { version, hash })
        };
        let form = match taker.number()? {
            0 => Form::Plain,
            1 => Form::Packed,
            2 => Form::Difference(base(taker)?),
            3 => Form::Like(taker.name()?, base(taker)?),
            4 => Form::Known,
            _ => return Err(Malformed),
        };
        Ok(Self {
            form,
            length: usize::try_from(taker.number()?).map_err(|_| Malformed)?,
            hash: u64::from_le_bytes(taker.exactly()?),
            bytes: Bytes::copy_from_slice(taker.bytes()?),
        })
    }
}

/// What is shorter is not worth packing by itself.
const PACKED_FROM: usize = 64;
/// What it takes to name another object, about.
const NAMED_BYTES: usize = 48;
/// The level at which packing an update takes some ten microseconds.
const LEVEL: i32 = 3;

/// Packs bytes with a base as what came before them; nothing if that fails.
pub fn pack(bytes: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let mut context = CCtx::try_create()?;
    let all = (bytes.len() + base.len()).max(1024);
    // Whatever is in the base can be referred to.
    let window = all.next_power_of_two().ilog2();
    for parameter in [
        CParameter::CompressionLevel(LEVEL),
        CParameter::WindowLog(window),
        CParameter::Format(FrameFormat::Magicless),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ] {
        context.set_parameter(parameter).ok()?;
    }
    if !base.is_empty() {
        context.ref_prefix(base).ok()?;
    }
    let mut packed = Vec::with_capacity(zstd::zstd_safe::compress_bound(bytes.len()));
    context.compress2(&mut packed, bytes).ok()?;
    Some(packed)
}

/// What was packed, if it is so long.
pub fn unpack(packed: &[u8], base: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut context = DCtx::try_create()?;
    let format = DParameter::Format(FrameFormat::Magicless);
    context.set_parameter(format).ok()?;
    if !base.is_empty() {
        context.ref_prefix(base).ok()?;
    }
    let mut bytes = Vec::with_capacity(length);
    context.decompress(&mut bytes, packed).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pod(name: &str, version: u64) -> Bytes {
        let condition = r#"{"lastProbeTime":null,"status":"True","type":"Ready"}"#;
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","uid":"{name}-uid",
            "resourceVersion":"{version}"}},"spec":{{"containers":[{{"image":"registry/app:1.2.3",
            "name":"app"}}]}},"status":{{"conditions":[{}]}}}}"#,
            [condition; 30].join(",")
        );
        Bytes::from(text)
    }

    fn base(bytes: &[u8], version: u64) -> Base {
        Base {
            version: version.to_string().parse().unwrap(),
            hash: content_hash(bytes),
        }
    }

    fn sent(content: &Content) -> Content {
        let mut out = Vec::new();
        content.encode(&mut out);
        let mut taker = Taker::new(&out);
        let taken = Content::decode(&mut taker).unwrap();
        taker.end().unwrap();
        taken
    }

    #[test]
    fn an_update_takes_few_bytes() {
        let (old, new) = (pod("a", 7), pod("a", 8));
        let form = Form::Difference(base(&old, 7));
        let content = sent(&Content::new(&new, Some((form, &old))));
        assert!(content.bytes.len() < 30, "{} bytes", content.bytes.len());
        assert_eq!(content.open(|_| Some(old)).unwrap(), new);
    }

    #[test]
    fn a_sibling_is_nearly_as_good() {
        let (other, new) = (pod("other", 7), pod("new", 8));
        let form = Form::Like(ObjectName::from_path("n/other"), base(&other, 7));
        let content = sent(&Content::new(&new, Some((form, &other))));
        assert!(content.bytes.len() < 60, "{} bytes", content.bytes.len());
        assert_eq!(content.open(|_| Some(other)).unwrap(), new);
    }

    #[test]
    fn who_lacks_the_base_or_has_another_says_so() {
        let (old, new) = (pod("a", 7), pod("a", 8));
        let form = Form::Difference(base(&old, 7));
        let content = Content::new(&new, Some((form, &old)));
        assert_eq!(content.open(|_| None), Err(Unusable::NoBase));
        let another = pod("a", 6);
        assert_eq!(content.open(|_| Some(another)), Err(Unusable::NoBase));
    }

    #[test]
    fn without_a_base_it_is_packed_and_what_is_short_is_not() {
        let content = sent(&Content::new(&pod("a", 7), None));
        assert_eq!(content.form, Form::Packed);
        assert_eq!(content.open(|_| None).unwrap(), pod("a", 7));
        let short = Bytes::from_static(b"{}");
        let content = sent(&Content::new(&short, None));
        assert_eq!(content.form, Form::Plain);
        assert_eq!(content.open(|_| None).unwrap(), short);
    }

    #[test]
    fn what_grows_beyond_what_it_claims_is_refused() {
        let zeros = Bytes::from(vec![b'0'; 1_000_000]);
        let mut content = Content::new(&zeros, None);
        assert!(content.bytes.len() < 200);
        content.length = 1_000;
        assert_eq!(content.open(|_| None), Err(Unusable::Different));
        content.length = usize::MAX;
        assert_eq!(content.open(|_| None), Err(Unusable::TooLarge));
    }

    #[test]
    fn what_is_known_is_not_sent() {
        let bytes = pod("a", 7);
        let content = sent(&Content {
            form: Form::Known,
            length: bytes.len(),
            hash: content_hash(&bytes),
            bytes: Bytes::new(),
        });
        assert_eq!(content.open(|_| Some(bytes.clone())).unwrap(), bytes);
        assert_eq!(
            content.open(|_| Some(pod("a", 8))),
            Err(Unusable::Different)
        );
    }

    proptest! {
        #[test]
        fn whatever_is_sent_arrives(
            old in prop::collection::vec(any::<u8>(), 0..3_000),
            start in any::<prop::sample::Index>(),
            new in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            // Something of the old one, with something new in it.
            let at = if old.is_empty() { 0 } else { start.index(old.len()) };
            let bytes = Bytes::from([&old[at..], &new, &old[..at]].concat());
            let form = Form::Difference(base(&old, 1));
            let content = sent(&Content::new(&bytes, Some((form, &old))));
            prop_assert_eq!(content.open(|_| Some(old.into())).unwrap(), bytes);
        }

        #[test]
        fn damage_is_noticed(
            index in any::<prop::sample::Index>(),
            flip in 1u8..=255,
        ) {
            let mut content = Content::new(&pod("a", 7), None);
            let mut bytes = content.bytes.to_vec();
            let index = index.index(bytes.len());
            bytes[index] ^= flip;
            content.bytes = bytes.into();
            if let Ok(opened) = content.open(|_| None) {
                prop_assert_eq!(opened, pod("a", 7));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(content) = Content::decode(&mut Taker::new(&bytes)) {
                drop(content.open(|_| Some(Bytes::from_static(b"base"))));
            }
        }
    }
}
