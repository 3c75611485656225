//! Runs a property for a span of time instead of a number of cases, and makes inputs by damaging recorded ones.
//!
//! A target is a test called `fuzz_…` beside the code it attacks. `make test` gives each half a second, `make fuzz` a
//! minute (`FUZZ_SECONDS`). A failure prints the smallest input that was found and the seed that finds it again
//! (`FUZZ_SEED`).
#![allow(clippy::panic, reason = "a property that does not hold ends its test")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};

/// How long a target runs in `make test`.
const DEFAULT_SECONDS: f64 = 0.5;

/// Cases between two looks at the clock. Few: one case of a slow target takes milliseconds.
const BATCH: u32 = 8;

/// Runs `property` on inputs of `strategy` until the time is up.
///
/// # Panics
///
/// With the smallest input for which the property does not hold, and the seed.
pub fn run<S: Strategy>(target: &str, strategy: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    let seconds = number("FUZZ_SECONDS").unwrap_or(DEFAULT_SECONDS);
    let first = number("FUZZ_SEED").unwrap_or_else(seed_of_now);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut batches = 0;
    while batches == 0 || Instant::now() < end {
        let seed = first.wrapping_add(batches);
        if let Err(problem) = batch(seed, strategy, &property) {
            panic!("{target} with FUZZ_SEED={seed}: {problem}");
        }
        batches += 1;
    }
    report(target, batches * u64::from(BATCH), seconds);
}

#[expect(
    clippy::print_stdout,
    reason = "`make fuzz` shows how far a target came"
)]
fn report(target: &str, cases: u64, seconds: f64) {
    println!("{target}: {cases} cases in {seconds} s");
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

fn seed_of_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        time.as_secs() << 20 | u64::from(time.subsec_micros())
    })
}

fn batch<S: Strategy>(
    seed: u64,
    strategy: &S,
    property: &impl Fn(S::Value) -> TestCaseResult,
) -> Result<(), TestError<S::Value>> {
    let config = Config {
        cases: BATCH,
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *place = byte;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(config, rng).run(strategy, property)
}

/// One change to a run of bytes. Numbers choose a place in what is there at that time.
#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize, usize),
    Insert(usize, Vec<u8>),
    Swap(usize, usize, usize),
}

/// Bytes that decoders stumble over: ends of text, escapes, numbers at their limits, nesting.
const AWKWARD: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\0",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xe2\x82",
    b"\x1b[",
    b"\x1b]8;;",
    b"null",
    b"-0",
    b"1e999",
    b"18446744073709551616",
    b"[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
    b"]}]}",
];

fn damage() -> impl Strategy<Value = Damage> {
    let piece = prop_oneof![
        3 => prop::sample::select(AWKWARD).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..8),
    ];
    prop_oneof![
        3 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        2 => (any::<usize>(), 1..40usize).prop_map(|(at, count)| Damage::Cut(at, count)),
        1 => (any::<usize>(), 1..40usize, 1..200usize).prop_map(|(at, count, times)| Damage::Repeat(at, count, times)),
        3 => (any::<usize>(), piece).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (any::<usize>(), any::<usize>(), 1..40usize).prop_map(|(a, b, count)| Damage::Swap(a, b, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let place = |at: usize| at % (bytes.len() + 1);
    let span = |at: usize, count: usize| place(at)..(place(at) + count).min(bytes.len());
    match damage {
        Damage::Flip(at, byte) => {
            let at = place(*at);
            if let Some(found) = bytes.get_mut(at) {
                *found ^= byte;
            }
        }
        Damage::Cut(at, count) => {
            let span = span(*at, *count);
            bytes.drain(span);
        }
        Damage::Repeat(at, count, times) => {
            let span = span(*at, *count);
            let more = bytes.get(span.clone()).unwrap_or_default().repeat(*times);
            bytes.splice(span.end..span.end, more);
        }
        Damage::Insert(at, more) => {
            let at = place(*at);
            bytes.splice(at..at, more.iter().copied());
        }
        Damage::Swap(from, to, count) => {
            let (from, to) = (span(*from, *count), place(*to));
            let piece: Vec<u8> = bytes.get(from).unwrap_or_default().to_vec();
            bytes.splice(to..to, piece);
        }
    }
}

/// One of these, as it is or damaged in up to eight places.
pub fn damaged(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec(damage(), 0..8);
    (prop::sample::select(seeds), changes).prop_map(|(mut bytes, changes)| {
        for change in &changes {
            apply(&mut bytes, change);
        }
        bytes
    })
}

/// Cuts `bytes` at these places, each taken as a place in what is left.
pub fn pieces<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    for cut in cuts {
        let (piece, rest) = bytes.split_at(cut % (bytes.len() + 1));
        found.push(piece);
        bytes = rest;
    }
    found.push(bytes);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_inputs_again() {
        let inputs = |seed| {
            let seen = std::cell::RefCell::new(Vec::new());
            let note = |bytes| {
                seen.borrow_mut().push(bytes);
                Ok(())
            };
            batch(seed, &damaged(vec![b"one line".to_vec()]), &note).unwrap();
            seen.into_inner()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    #[should_panic(expected = "length with FUZZ_SEED=")]
    fn a_property_that_does_not_hold_ends_the_test_with_its_seed() {
        run("length", &damaged(vec![vec![b'a'; 60]]), |bytes| {
            prop_assert!(bytes.len() < 61, "longer than it was");
            Ok(())
        });
    }

    #[test]
    fn pieces_are_the_whole() {
        let cut = pieces(b"abcdef", &[2, 9, 0]);
        assert_eq!(cut, [&b"ab"[..], b"cdef", b"", b""]);
        assert_eq!(cut.concat(), b"abcdef");
    }
}
