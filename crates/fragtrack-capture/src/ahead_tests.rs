use proptest::prelude::*;

use super::*;

/// Records of one length byte, which counts itself.
struct Counted;

impl Chain for Counted {
    const HEAD: usize = 1;

    fn step(&self, near: &[u8; NEAR]) -> Option<u32> {
        (near[0] > 0).then(|| u32::from(near[0]))
    }

    fn find(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        pair(bytes, from, to, 200, 0)
    }
}

fn records(count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| (0..200).map(|at| if at == 0 { 200 } else { 0 })).collect()
}

#[test]
fn the_lengths_ahead_are_known() {
    let bytes = records(4_000);
    let mut ahead = Ahead::new();
    let upto = ahead.prepare(&Counted, &bytes, 0);
    assert!(upto >= SMALLEST && ahead.lengths().len() > upto / 200 - LANES, "{}", ahead.lengths().len());
    assert!(ahead.lengths().iter().all(|length| *length == 200));
    let known = ahead.lengths().len();
    ahead.passed(2_000, 10, 10);
    assert_eq!(ahead.lengths().len(), known - 10);
    assert_eq!(ahead.prepare(&Counted, &bytes, 2_000), upto, "not again before the window ends");
    ahead.passed(2_000, 10, 9);
    assert!(ahead.lengths().is_empty(), "one was wrong");
}

#[test]
fn wrong_guesses_are_not_kept_and_make_it_pause() {
    // Wherever a lane looks, it finds what seems to be a record and leads nowhere.
    let mut bytes = records(4_000);
    for at in 10_000..bytes.len() {
        bytes[at] = [200, 0, 1][at % 3];
    }
    let mut ahead = Ahead::new();
    for _ in 0..3 {
        let upto = ahead.prepare(&Counted, &bytes, 0);
        assert!(ahead.lengths().len() < upto / 100);
        ahead.passed(upto, 0, 0);
    }
    assert!(ahead.penalty > 1);
}

#[test]
fn little_is_not_looked_ahead_in() {
    let bytes = records(100);
    let mut ahead = Ahead::new();
    assert_eq!(ahead.prepare(&Counted, &bytes, 200), bytes.len());
    assert!(ahead.lengths().is_empty());
}

proptest! {
    #[test]
    fn a_pair_is_found_where_it_stands(
        bytes in prop::collection::vec(0..4_u8, 0..300),
        from in 0..320_usize,
        length in 0..320_usize,
    ) {
        let to = from + length;
        let want = (from..to.min(bytes.len().saturating_sub(1))).find(|at| bytes[*at..*at + 2] == [1, 2]);
        prop_assert_eq!(pair(&bytes, from, to, 1, 2), want);
    }
}
