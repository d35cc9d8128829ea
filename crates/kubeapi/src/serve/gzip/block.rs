//! A block of deflate: what was there before is said by length and distance, the rest as it is, all
//! in a code made for this block (RFC 1951, 3.2).

use super::bits::Bits;
use super::huffman::Code;

/// Bytes of one block: more than a piece of a list has, so that it is not divided.
pub(super) const BYTES_MAX: usize = 128 * 1024;

/// What blocks are made with; kept from one to the next.
pub(super) struct Blocks {
    /// Where six bytes with this hash were last, plus one; zero is nowhere.
    last: [u32; 1 << HASH_BITS],
    steps: Vec<Step>,
    /// Every other literal is counted apart: adding to one count twice in a row is slow.
    others: [u32; 256],
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            last: [0; 1 << HASH_BITS],
            steps: Vec::new(),
            others: [0; 256],
            literals: [0; LITERALS],
            distances: [0; DISTANCES],
        }
    }
}

/// Some bytes as they are, and then a repetition. The last step of a block may have none.
struct Step {
    literals: u32,
    length: u16,
    distance: u16,
}

impl Blocks {
    /// Writes a block. It is never much longer than what it says.
    pub(super) fn write(&mut self, bytes: &[u8], bits: &mut Bits) {
        assert!(
            bytes.len() <= BYTES_MAX,
            "whoever divides a piece knows the limit"
        );
        self.find(bytes);
        let codes = Codes::for_counts(&self.literals, &self.distances);
        bits.reserve(bytes.len());
        if codes.bits(&self.literals, &self.distances) < bytes.len() * 8 {
            codes.write(bits);
            self.write_steps(bytes, &codes, bits);
        } else {
            bytes.chunks(STORED_MAX).for_each(|some| store(some, bits));
        }
    }

    /// Finds repetitions, and counts what is to be written.
    fn find(&mut self, bytes: &[u8]) {
        self.last.fill(0);
        self.steps.clear();
        self.others = [0; 256];
        self.literals = [0; LITERALS];
        self.distances = [0; DISTANCES];
        self.literals[END] = 1;
        let (mut at, mut said) = (0, 0);
        let mut misses = 0;
        while at + EIGHT <= bytes.len() {
            let seen = self.seen(bytes, at);
            let Some(from) = seen else {
                // Where nothing repeats for long, fewer places are looked at.
                at += 1 + (misses >> MISSES_SHIFT).min(STRIDE_MAX);
                misses += 1;
                continue;
            };
            misses = 0;
            // The repetition may have begun earlier, but it must reach beyond this place: there is
            // no way back.
            let reach = at.saturating_sub(LENGTH_MAX - EIGHT).max(said);
            let before = same_before(&bytes[reach..at], &bytes[..from]);
            let (at_first, from) = (at - before, from - before);
            let length = same(&bytes[from..], &bytes[at_first..]);
            self.step(&bytes[said..at_first], length, at_first - from);
            at = at_first + length;
            said = at;
            // A place shortly before the end helps the next one.
            if at + EIGHT <= bytes.len() {
                self.seen(bytes, at - 2);
            }
        }
        self.step(&bytes[said..], 0, 0);
        let counts = self.literals.iter_mut().zip(&self.others);
        counts.for_each(|(count, other)| *count += other);
    }

    /// Where the six bytes at this place were before, not too far back. From now on they were here.
    #[inline]
    fn seen(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let six = six_at(bytes, at);
        let hash = (six.wrapping_mul(HASH_FACTOR) >> (64 - HASH_BITS)) as usize;
        let entry = std::mem::replace(&mut self.last[hash], (at + 1) as u32);
        let from = (entry as usize).checked_sub(1)?;
        (at - from <= DISTANCE_MAX && six_at(bytes, from) == six).then_some(from)
    }

    fn step(&mut self, literals: &[u8], length: usize, distance: usize) {
        let (pairs, last) = literals.as_chunks::<2>();
        for [one, other] in pairs {
            self.literals[usize::from(*one)] += 1;
            self.others[usize::from(*other)] += 1;
        }
        for literal in last {
            self.literals[usize::from(*literal)] += 1;
        }
        if length > 0 {
            self.literals[length_code(length).0] += 1;
            self.distances[distance_code(distance).0] += 1;
        }
        self.steps.push(Step {
            literals: literals.len() as u32,
            length: length as u16,
            distance: distance as u16,
        });
    }

    fn write_steps(&self, bytes: &[u8], codes: &Codes, bits: &mut Bits) {
        let (literals, distances) = (&codes.literals, &codes.distances);
        let table: [u32; 256] = std::array::from_fn(|byte| {
            u32::from(literals.bits[byte]) << 8 | u32::from(literals.lengths[byte])
        });
        let mut at = 0;
        for step in &self.steps {
            let end = at + step.literals as usize;
            write_literals(&bytes[at..end], &table, bits);
            at = end + usize::from(step.length);
            if step.length == 0 {
                continue;
            }
            let (code, extra, extra_bits) = length_code(step.length.into());
            let length = u32::from(literals.lengths[code]);
            let mut all = u64::from(literals.bits[code]) | (extra as u64) << length;
            let mut count = length + extra_bits;
            let (code, extra, extra_bits) = distance_code(step.distance.into());
            let length = u32::from(distances.lengths[code]);
            all |= u64::from(distances.bits[code]) << count | (extra as u64) << (count + length);
            count += length + extra_bits;
            bits.put(all, count);
        }
        bits.put(literals.bits[END].into(), literals.lengths[END].into());
    }
}

/// A block of bytes as they are: not final, stored.
fn store(bytes: &[u8], bits: &mut Bits) {
    bits.put(0, 3);
    bits.align();
    let length = bytes.len() as u16;
    bits.bytes(&length.to_le_bytes());
    bits.bytes(&(!length).to_le_bytes());
    bits.bytes(bytes);
}

/// Four codes of at most fourteen bits at a time.
fn write_literals(literals: &[u8], table: &[u32; 256], bits: &mut Bits) {
    let (fours, rest) = literals.as_chunks::<4>();
    for four in fours {
        let (mut all, mut count) = (0, 0);
        for literal in four {
            let entry = table[usize::from(*literal)];
            // Checking each for an overflow takes as long as the work; four of 14 bits have none.
            all |= u64::from(entry >> 8).wrapping_shl(count);
            count = count.wrapping_add(entry & 0xff);
        }
        bits.put(all, count);
    }
    for literal in rest {
        let entry = table[usize::from(*literal)];
        bits.put(u64::from(entry >> 8), entry & 0xff);
    }
}

/// The codes of one block.
struct Codes {
    literals: Code<LITERALS>,
    distances: Code<DISTANCES>,
}

impl Codes {
    fn for_counts(literals: &[u32; LITERALS], distances: &[u32; DISTANCES]) -> Self {
        // Four of these are written at once.
        let literals = Code::for_counts(literals, 14);
        let mut distances = Code::for_counts(distances, 15);
        // A block without repetitions must still have a code for one distance.
        if distances.lengths.iter().all(|length| *length == 0) {
            distances.lengths[0] = 1;
        }
        Self {
            literals,
            distances,
        }
    }

    /// How many bits all of the block takes, and a little more.
    fn bits(&self, literals: &[u32; LITERALS], distances: &[u32; DISTANCES]) -> usize {
        let literal_bits = literals.iter().zip(&self.literals.lengths).enumerate();
        let literal_bits = literal_bits.map(|(symbol, (count, length))| {
            let extra = symbol.saturating_sub(END + 1) / 4;
            *count as usize * (usize::from(*length) + extra)
        });
        let distance_bits = distances.iter().zip(&self.distances.lengths).enumerate();
        let distance_bits = distance_bits
            .map(|(symbol, (count, length))| *count as usize * (usize::from(*length) + symbol / 2));
        HEAD_BITS_MAX + literal_bits.sum::<usize>() + distance_bits.sum::<usize>()
    }

    /// Writes the head of the block: the lengths of all codes, in a code of their own.
    fn write(&self, bits: &mut Bits) {
        let literals = used(&self.literals.lengths, END + 1);
        let distances = used(&self.distances.lengths, 1);
        let lengths = [
            &self.literals.lengths[..literals],
            &self.distances.lengths[..distances],
        ];
        let runs = runs(&lengths.concat());
        let mut counts = [0; RUN_SYMBOLS];
        runs.iter().for_each(|run| counts[run.symbol] += 1);
        let code = Code::for_counts(&counts, 7);
        let in_order = RUN_ORDER.map(|symbol| code.lengths[symbol]);
        let said = used(&in_order, 4);
        // Not final, with codes of its own.
        bits.put(0b100, 3);
        bits.put((literals - 257) as u64, 5);
        bits.put((distances - 1) as u64, 5);
        bits.put((said - 4) as u64, 4);
        for length in &in_order[..said] {
            bits.put((*length).into(), 3);
        }
        for Run {
            symbol,
            extra,
            extra_bits,
        } in runs
        {
            bits.put(code.bits[symbol].into(), code.lengths[symbol].into());
            bits.put(extra, extra_bits);
        }
    }
}

/// A length of a code, or several alike.
struct Run {
    symbol: usize,
    extra: u64,
    extra_bits: u32,
}

fn runs(lengths: &[u8]) -> Vec<Run> {
    let mut runs = Vec::new();
    let run = |symbol, extra: usize, extra_bits| Run {
        symbol,
        extra: extra as u64,
        extra_bits,
    };
    for alike in lengths.chunk_by(|one, other| one == other) {
        let length = usize::from(alike[0]);
        let mut left = alike.len();
        while left > 0 {
            let (taken, next) = match (length, left) {
                (0, 11..) => (left.min(138), run(18, left.min(138) - 11, 7)),
                (0, 3..) => (left, run(17, left - 3, 3)),
                // What came before is repeated, so it must have come.
                (1.., 3..) if left < alike.len() => (left.min(6), run(16, left.min(6) - 3, 2)),
                _ => (1, run(length, 0, 0)),
            };
            runs.push(next);
            left -= taken;
        }
    }
    runs
}

/// How many lengths must be said: all up to the last that is not zero, and some at least.
fn used(lengths: &[u8], least: usize) -> usize {
    let last = lengths.iter().rposition(|length| *length > 0);
    last.map_or(0, |last| last + 1).max(least)
}

/// The symbol for a length of 3 to 258, with the bits that tell it from others of that symbol.
#[inline]
fn length_code(length: usize) -> (usize, usize, u32) {
    let over = length - 3;
    match over {
        0..4 => (END + 1 + over, 0, 0),
        255 => (END + 29, 0, 0),
        _ => {
            let extra_bits = over.ilog2() - 2;
            let symbol = END + 1 + 4 * (extra_bits as usize + 1) + (over >> extra_bits & 3);
            (symbol, over & ((1 << extra_bits) - 1), extra_bits)
        }
    }
}

/// The symbol for a distance of 1 to 32,768.
#[inline]
fn distance_code(distance: usize) -> (usize, usize, u32) {
    let over = distance - 1;
    match over {
        0..2 => (over, 0, 0),
        _ => {
            let extra_bits = over.ilog2() - 1;
            let symbol = 2 * (extra_bits as usize + 1) + (over >> extra_bits & 1);
            (symbol, over & ((1 << extra_bits) - 1), extra_bits)
        }
    }
}

#[inline]
fn six_at(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at..].first_chunk().expect("eight bytes are left");
    u64::from_le_bytes(*eight) << 16
}

/// How many bytes are the same from the beginning, as far as one repetition can say.
#[inline]
fn same(from: &[u8], at: &[u8]) -> usize {
    let at = &at[..at.len().min(LENGTH_MAX)];
    let (eights, _) = at.as_chunks::<EIGHT>();
    let (before, _) = from.as_chunks::<EIGHT>();
    for (index, (one, other)) in eights.iter().zip(before).enumerate() {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return index * EIGHT + (differ.trailing_zeros() / 8) as usize;
        }
    }
    let whole = eights.len() * EIGHT;
    let rest = at[whole..].iter().zip(&from[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

/// How many bytes are the same before both ends.
#[inline]
fn same_before(unsaid: &[u8], from: &[u8]) -> usize {
    let pairs = unsaid.iter().rev().zip(from.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// The symbol that ends a block; bytes are below, lengths above.
const END: usize = 256;
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const RUN_SYMBOLS: usize = 19;
/// The order in which lengths of the code for lengths are said.
const RUN_ORDER: [usize; RUN_SYMBOLS] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];
/// What the two bytes of a stored block's length can say.
const STORED_MAX: usize = 65_535;
const LENGTH_MAX: usize = 258;
const DISTANCE_MAX: usize = 32_768;
const EIGHT: usize = 8;
/// The table has 64 KiB, which stays in a near cache.
const HASH_BITS: u32 = 14;
const HASH_FACTOR: u64 = 0x9e37_79b1_85eb_ca87;
/// After so many misses, as a power of two, the stride grows by one.
const MISSES_SHIFT: usize = 4;
const STRIDE_MAX: usize = 15;
/// More than the head of a block takes.
const HEAD_BITS_MAX: usize = 17 + 3 * RUN_SYMBOLS + (LITERALS + DISTANCES) * 14;
