//! Digests of sets: whatever the order, the same things have the same digest.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::{Header, ObjectName, Resource, Version};

/// The digest of a set. Adding and removing take the same time however large the set is.
///
/// It is the sum of a hash of each member. Nobody can choose what is hashed: uids and versions are
/// given out by the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest(u128);

impl Digest {
    /// Takes in something that was not there.
    pub fn add(&mut self, member: Member) {
        self.0 = self.0.wrapping_add(member.0);
    }

    /// Takes out something that was there.
    pub fn remove(&mut self, member: Member) {
        self.0 = self.0.wrapping_sub(member.0);
    }

    /// The digest of both sets, which have nothing in common.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// The digest in short: enough to tell whether two small sets differ.
    pub fn short(self) -> u64 {
        self.0 as u64
    }

    /// The digest as it is sent.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// A digest as it was sent.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }
}

/// A member of a set, as it counts in the set's digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member(u128);

impl Member {
    /// This version of an object.
    pub fn of(resource: &Resource, header: &Header) -> Self {
        Self::named(resource, &header.name, &header.uid, &header.version)
    }

    /// A version of an object, by its parts.
    pub fn named(resource: &Resource, name: &ObjectName, uid: &str, version: &Version) -> Self {
        let version = version.to_string();
        Self(hash([resource.as_str(), name.as_str(), uid, &version]))
    }

    /// The member in short.
    pub fn short(self) -> u64 {
        self.0 as u64
    }

    /// An object as its bytes are, whatever its version says.
    pub fn content(resource: &Resource, name: &ObjectName, sum: Sum) -> Self {
        let sum = sum.0.to_string();
        Self(hash([resource.as_str(), name.as_str(), &sum]))
    }
}

/// What the bytes of an object come to: their length and a checksum. It costs a store nothing, and
/// tells whether two objects of one version are the same by accident or not; who could choose the
/// bytes could make it lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::new(bytes.len() as u32, crc32fast::hash(bytes))
    }

    /// That of so many bytes with this checksum (CRC-32, as in zip files).
    pub fn new(bytes: u32, crc: u32) -> Self {
        Self(u64::from(bytes) << 32 | u64::from(crc))
    }

    /// How many bytes there are.
    pub fn bytes(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// The hash by which a base and the bytes that come of a delta are known.
pub fn content_hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish128().h1
}

/// Which of `1 << bits` buckets an object of this name is in.
pub fn bucket(name: &ObjectName, bits: u32) -> usize {
    let hash = hash([name.as_str()]);
    (hash & ((1 << bits) - 1)) as usize
}

/// A hash of several texts, each of which counts with its length.
fn hash<const N: usize>(texts: [&str; N]) -> u128 {
    let mut hasher = SipHasher24::new();
    for text in texts {
        hasher.write(&(text.len() as u64).to_le_bytes());
        hasher.write(text.as_bytes());
    }
    hasher.finish128().as_u128()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(name: &str, version: u64) -> Member {
        let pods = Resource::new("", "pods");
        let version = version.to_string().parse().unwrap();
        Member::named(&pods, &ObjectName::from_path(name), "u", &version)
    }

    #[test]
    fn nothing_runs_into_the_next_part() {
        let pods = Resource::new("", "pods");
        let version = Version::FIRST;
        let one = Member::named(&pods, &ObjectName::from_path("ab"), "c", &version);
        let other = Member::named(&pods, &ObjectName::from_path("a"), "bc", &version);
        assert_ne!(one, other);
    }

    #[test]
    fn the_same_version_with_other_bytes_is_another_content() {
        let pods = Resource::new("", "pods");
        let name = ObjectName::from_path("a");
        let of = |bytes: &[u8]| Member::content(&pods, &name, Sum::of(bytes));
        assert_eq!(of(b"one"), of(b"one"));
        assert_ne!(of(b"one"), of(b"two"));
        assert_ne!(of(b""), of(b"\0"));
    }

    #[test]
    fn a_digest_is_the_same_after_it_was_sent() {
        let mut digest = Digest::default();
        digest.add(member("a", 7));
        assert_eq!(Digest::from_bytes(digest.to_bytes()), digest);
    }

    proptest! {
        #[test]
        fn the_order_does_not_count_and_what_was_removed_leaves_nothing(
            members in prop::collection::vec(("[a-c]{1,3}", 1u64..9), 0..20),
            turn in any::<prop::sample::Index>(),
        ) {
            let mut one = Digest::default();
            members.iter().for_each(|(name, version)| one.add(member(name, *version)));
            let mut other = Digest::default();
            let start = if members.is_empty() { 0 } else { turn.index(members.len()) };
            let turned = members[start..].iter().chain(&members[..start]);
            turned.for_each(|(name, version)| other.add(member(name, *version)));
            prop_assert_eq!(one, other);
            other.add(member("other", 1));
            prop_assert_ne!(one, other);
            other.remove(member("other", 1));
            members.iter().for_each(|(name, version)| other.remove(member(name, *version)));
            prop_assert_eq!(other, Digest::default());
        }

        #[test]
        fn every_name_is_in_a_bucket(name in "[a-z/]{1,20}", bits in 0u32..16) {
            prop_assert!(bucket(&ObjectName::from_path(&name), bits) < 1 << bits);
        }
    }
}
