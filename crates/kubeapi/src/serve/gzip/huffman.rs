//! Codes without a prefix of each other, short ones for what is frequent (RFC 1951, 3.2.2).

/// A code for each of `N` symbols.
pub(super) struct Code<const N: usize> {
    /// How many bits each symbol has; none for one that does not occur.
    pub(super) lengths: [u8; N],
    /// The bits, in the order in which they are written.
    pub(super) bits: [u16; N],
}

impl<const N: usize> Code<N> {
    /// The best code for symbols that are so frequent, with none longer than `length_max`, or one
    /// that is nearly as good where the best would be longer.
    pub(super) fn for_counts(counts: &[u32; N], length_max: usize) -> Self {
        assert!(
            length_max <= 15 && N <= 1 << length_max,
            "codes have 15 bits"
        );
        let mut sorted = [0u64; N];
        let mut used = 0;
        for (symbol, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            sorted[used] = u64::from(*count) << 16 | symbol as u64;
            used += 1;
        }
        let sorted = &mut sorted[..used];
        sorted.sort_unstable();
        let mut lengths = [0; N];
        let mut per_length = lengths_of_best(sorted);
        limit(&mut per_length, length_max);
        // The rarest have the longest.
        let mut rarest = sorted.iter();
        for length in (1..=length_max).rev() {
            for entry in rarest.by_ref().take(per_length[length]) {
                lengths[(entry & 0xffff) as usize] = length as u8;
            }
        }
        let bits = canonical(&lengths, &per_length);
        Self { lengths, bits }
    }
}

/// How many symbols have codes of each length in the best code that there is (Huffman's).
fn lengths_of_best(sorted: &[u64]) -> [usize; LENGTHS] {
    let mut per_length = [0; LENGTHS];
    let used = sorted.len();
    if used <= 1 {
        // One code alone still needs a bit.
        per_length[1] = used;
        return per_length;
    }
    // The two rarest of symbols and trees become a tree, again and again. Symbols are sorted, and
    // trees are made in the order of their size, so that the rarest is always at one of two fronts.
    let mut sizes = vec![0u64; used - 1];
    let mut parents = vec![0u16; 2 * used - 1];
    let (mut symbol, mut tree) = (0, 0);
    for made in 0..used - 1 {
        let mut size = 0;
        for _ in 0..2 {
            let by_symbol = sorted.get(symbol).map(|entry| entry >> 16);
            let by_tree = (tree < made).then(|| sizes[tree]);
            match (by_symbol, by_tree) {
                (Some(count), rarer) if rarer.is_none_or(|rarer| count <= rarer) => {
                    parents[symbol] = made as u16;
                    size += count;
                    symbol += 1;
                }
                (_, count) => {
                    parents[used + tree] = made as u16;
                    size += count.unwrap_or(0);
                    tree += 1;
                }
            }
        }
        sizes[made] = size;
    }
    // Downwards from the last tree, which holds all.
    let mut depths = vec![0usize; used - 1];
    for tree in (0..used - 2).rev() {
        depths[tree] = depths[parents[used + tree] as usize] + 1;
    }
    for parent in &parents[..used] {
        per_length[(depths[*parent as usize] + 1).min(LENGTHS - 1)] += 1;
    }
    per_length
}

/// Shortens what is too long, and lengthens others for it until there is a code for all.
fn limit(per_length: &mut [usize; LENGTHS], length_max: usize) {
    let too_long: usize = per_length[length_max + 1..].iter().sum();
    per_length[length_max] += too_long;
    per_length[length_max + 1..].fill(0);
    let mut room_taken: usize = (1..=length_max)
        .map(|length| per_length[length] << (length_max - length))
        .sum();
    while room_taken > 1 << length_max {
        // One of the longest goes where a shorter one was, which both become a bit longer.
        let shorter = (1..length_max).rev().find(|length| per_length[*length] > 0);
        let shorter = shorter.expect("fewer symbols than codes of the longest");
        per_length[length_max] -= 1;
        per_length[shorter] -= 1;
        per_length[shorter + 1] += 2;
        room_taken -= 1;
    }
}

/// Codes in the order of their lengths and then of the symbols, each turned round: deflate writes
/// them with the highest bit first.
fn canonical<const N: usize>(lengths: &[u8; N], per_length: &[usize; LENGTHS]) -> [u16; N] {
    let mut next = [0u16; LENGTHS];
    let mut code = 0u16;
    for length in 1..=15 {
        code = (code + per_length[length - 1] as u16) << 1;
        next[length] = code;
    }
    let mut bits = [0; N];
    for (symbol, length) in lengths
        .iter()
        .enumerate()
        .filter(|(_, length)| **length > 0)
    {
        let next = &mut next[usize::from(*length)];
        bits[symbol] = next.reverse_bits() >> (16 - length);
        *next += 1;
    }
    bits
}

/// More than any code of a block can be long. The counts of a tree this deep are Fibonacci's
/// numbers at least, which makes millions of symbols; a block has fewer.
const LENGTHS: usize = 33;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether every sequence of bits means something: nothing is wasted, nothing is ambiguous.
    fn is_complete(lengths: &[u8]) -> bool {
        let used = lengths.iter().filter(|length| **length > 0);
        used.map(|length| 1u64 << (32 - length)).sum::<u64>() == 1 << 32
    }

    #[test]
    fn the_more_frequent_symbol_has_the_shorter_code() {
        let code = Code::for_counts(&[1, 10, 0, 5, 2], 15);
        assert_eq!(code.lengths, [3, 1, 0, 2, 3]);
        // Turned round: 110, 0, 10, 111.
        assert_eq!(code.bits, [0b011, 0b0, 0, 0b01, 0b111]);
    }

    #[test]
    fn a_code_that_would_be_too_deep_is_made_flatter() {
        // Fibonacci's numbers make the deepest tree there is.
        let mut counts = [1u32; 24];
        for index in 2..24 {
            counts[index] = counts[index - 1] + counts[index - 2];
        }
        let sorted = counts.map(|count| u64::from(count) << 16);
        assert_eq!(lengths_of_best(&sorted)[23], 2);
        let flat = Code::for_counts(&counts, 7);
        assert_eq!(flat.lengths.iter().max(), Some(&7));
        assert!(is_complete(&flat.lengths), "{:?}", flat.lengths);
    }

    #[test]
    fn one_symbol_alone_has_a_bit_and_none_has_none() {
        assert_eq!(Code::for_counts(&[0, 7, 0], 15).lengths, [0, 1, 0]);
        assert_eq!(Code::for_counts(&[0, 0, 0], 15).lengths, [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_code_is_complete_and_within_its_limit(
            counts in prop::array::uniform32(prop_oneof![Just(0u32), 1..4u32, 1..100_000u32]),
        ) {
            prop_assume!(counts.iter().filter(|count| **count > 0).count() > 1);
            let code = Code::for_counts(&counts, 7);
            prop_assert!(is_complete(&code.lengths), "{:?}", code.lengths);
            for (length, count) in code.lengths.iter().zip(&counts) {
                prop_assert!((*length == 0) == (*count == 0) && *length <= 7);
            }
        }
    }
}
