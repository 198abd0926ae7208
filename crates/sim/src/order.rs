//! Order among packets that mostly have it: by the time at which they come, and by the route on which they go.

use congestlab_net::packet::Packet;

/// Moves for each key after which those that are left are taken to be anywhere.
const PATIENCE: usize = 4;

/// Sorts keys, of which mostly few are out of place, and not far.
#[inline(never)]
pub(crate) fn sort(keys: &mut [u64]) {
    let mut moves = 0;
    for at in 1..keys.len() {
        let key = keys[at];
        let mut place = at;
        while place > 0 && keys[place - 1] > key {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
        moves += at - place;
        if moves > PATIENCE * keys.len() {
            return keys.sort_unstable();
        }
    }
}

/// True if all packets have one route.
#[inline]
pub(crate) fn have_one_route(packets: &[Packet]) -> bool {
    let [first, .., last] = packets else { return true };
    // The last one first: where routes mix, it mostly tells. No other ends the search, which takes longer than to go on.
    first.route == last.route
        && packets.iter().fold(0, |others, packet| others | (packet.route ^ first.route)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_however_they_came() {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for n in 0..60 {
            for reach in [0, 1, 3, 1000] {
                let mut keys: Vec<u64> = (0..n).map(|at| at + draw() % (reach + 1)).collect();
                let mut sorted = keys.clone();
                sorted.sort();
                sort(&mut keys);
                assert_eq!(keys, sorted, "of {n} keys, each out of place by up to {reach}");
            }
        }
    }

    #[test]
    fn one_route_is_that_of_every_packet() {
        let packets = [7, 7, 7, 8, 7].map(|route| Packet { route, ..Packet::default() });
        let ranges = [(0..0, true), (3..4, true), (0..3, true), (0..4, false), (0..5, false)];
        for (range, is_one) in ranges {
            assert_eq!(have_one_route(&packets[range.clone()]), is_one, "{range:?}");
        }
    }
}
