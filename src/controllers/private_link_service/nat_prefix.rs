//! Which prefix of a virtual network the NAT subnet gets. Pure.

use ipnet::Ipv4Net;
use serde_json::Value;

/// The length and pool that the operator chose for NAT subnets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatSubnetRules {
    /// 24 to 28.
    pub prefix_length: u8,
    /// Where to take prefixes from; the network's own address space if none is given.
    pub pool: Option<Ipv4Net>,
}

/// How many of the candidates at the top of the space different clusters choose from.
const SPREAD: u64 = 16;

/// A prefix that Azure has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The refused prefix.
    pub prefix: Ipv4Net,
    /// The [`layout`] of the network in which it was refused, where that is known. In another one it may be free.
    pub layout: Option<u64>,
}

/// A free prefix in the virtual network, if there is one.
///
/// Packed from the top of the space, so that the rest stays whole; `seed` spreads clusters that choose at the same
/// time, and what was `refused` in this layout is left out.
pub fn choose(virtual_network: &Value, rules: NatSubnetRules, seed: &str, refused: &[Refused]) -> Option<Ipv4Net> {
    let layout = layout(virtual_network);
    let occupied: Vec<Ipv4Net> = subnets(virtual_network)
        .flat_map(prefixes_of_subnet)
        .chain(refused_in(layout, refused))
        .collect();
    let free: Vec<Ipv4Net> = spaces(virtual_network, rules)
        .into_iter()
        .flat_map(|space| from_the_top(space, rules.prefix_length))
        .filter(|candidate| !occupied.iter().any(|used| overlaps(*used, *candidate)))
        .take(usize::try_from(SPREAD).unwrap_or(usize::MAX))
        .collect();
    let choice = hash(seed) % u64::try_from(free.len()).ok().filter(|n| *n > 0)?;
    free.get(usize::try_from(choice).ok()?).copied()
}

/// The prefixes that are refused in a layout.
fn refused_in(layout: u64, refused: &[Refused]) -> impl Iterator<Item = Ipv4Net> {
    let counting = refused
        .iter()
        .filter(move |refused| refused.layout.is_none_or(|then| then == layout));
    counting.map(|refused| refused.prefix)
}

/// Stands for the address space of a network and its subnets, as far as they matter here.
pub fn layout(virtual_network: &Value) -> u64 {
    let own = virtual_network.pointer("/properties/addressSpace/addressPrefixes");
    let space = parse(own.and_then(Value::as_array).into_iter().flatten());
    let occupied = subnets(virtual_network).flat_map(prefixes_of_subnet);
    let mut all: Vec<String> = space.iter().map(|prefix| format!("+{prefix}")).collect();
    all.extend(occupied.map(|prefix| format!("-{prefix}")));
    all.sort();
    hash(&all.concat())
}

/// FNV-1a (<https://datatracker.ietf.org/doc/draft-eastlake-fnv/>): every version of the program has to choose alike.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The subnets in the body of a virtual network.
fn subnets(virtual_network: &Value) -> impl Iterator<Item = &Value> {
    virtual_network
        .pointer("/properties/subnets")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Both spellings of a subnet's prefixes; IPv6 is left alone.
fn prefixes_of_subnet(subnet: &Value) -> Vec<Ipv4Net> {
    let one = subnet.pointer("/properties/addressPrefix").into_iter();
    let many = subnet
        .pointer("/properties/addressPrefixes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    parse(one.chain(many))
}

/// The parts of the network's address space that may be used, highest first.
fn spaces(virtual_network: &Value, rules: NatSubnetRules) -> Vec<Ipv4Net> {
    let own = virtual_network
        .pointer("/properties/addressSpace/addressPrefixes")
        .and_then(Value::as_array);
    let mut spaces = parse(own.into_iter().flatten());
    if let Some(pool) = rules.pool {
        spaces = spaces.into_iter().filter_map(|space| smaller(space, pool)).collect();
    }
    spaces.sort();
    spaces.reverse();
    spaces
}

/// The one of two prefixes that lies in the other.
fn smaller(space: Ipv4Net, pool: Ipv4Net) -> Option<Ipv4Net> {
    if space.contains(&pool) {
        Some(pool)
    } else {
        pool.contains(&space).then_some(space)
    }
}

fn parse<'a>(texts: impl Iterator<Item = &'a Value>) -> Vec<Ipv4Net> {
    texts
        .filter_map(Value::as_str)
        .filter_map(|text| text.parse().ok())
        .collect()
}

fn from_the_top(space: Ipv4Net, length: u8) -> impl Iterator<Item = Ipv4Net> {
    let step = 1_u32.checked_shl(u32::from(32 - length.min(32))).unwrap_or(0);
    let first = u32::from(space.network());
    let fits = length >= space.prefix_len() && step > 0;
    let last = u32::from(space.broadcast()) & !(step.wrapping_sub(1));
    let mut next = fits.then_some(last);
    std::iter::from_fn(move || {
        let at = next.filter(|at| *at >= first)?;
        next = at.checked_sub(step);
        Ipv4Net::new(at.into(), length).ok()
    })
}

fn overlaps(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b) || b.contains(&a)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const RULES: NatSubnetRules = NatSubnetRules {
        prefix_length: 28,
        pool: None,
    };

    fn network(space: &[&str], occupied: &[&str]) -> Value {
        let subnets: Vec<Value> = occupied
            .iter()
            .map(|p| json!({"properties": {"addressPrefix": p}}))
            .collect();
        json!({"properties": {"addressSpace": {"addressPrefixes": space}, "subnets": subnets}})
    }

    #[test]
    fn prefix_lies_in_the_space_of_the_network_whatever_that_is() {
        for space in ["10.0.0.0/16", "192.168.4.0/22", "172.31.255.240/28"] {
            let chosen = choose(&network(&[space], &[]), RULES, "infra", &[]).unwrap();
            assert!(space.parse::<Ipv4Net>().unwrap().contains(&chosen), "{chosen}");
        }
    }

    #[test]
    fn prefix_is_taken_from_the_top_of_the_space() {
        let chosen = choose(&network(&["10.0.0.0/16"], &["10.0.0.0/24"]), RULES, "infra", &[]).unwrap();
        assert!(
            "10.0.255.0/24".parse::<Ipv4Net>().unwrap().contains(&chosen),
            "{chosen}"
        );
    }

    #[test]
    fn full_network_has_no_room() {
        assert_eq!(
            choose(&network(&["10.0.0.0/24"], &["10.0.0.0/24"]), RULES, "infra", &[]),
            None
        );
        assert_eq!(choose(&network(&["fd00::/48"], &[]), RULES, "infra", &[]), None);
        assert_eq!(choose(&network(&["10.0.0.0/29"], &[]), RULES, "infra", &[]), None);
    }

    #[test]
    fn plural_spelling_counts_as_taken() {
        let mut full = network(&["10.0.0.0/28"], &[]);
        full["properties"]["subnets"] = json!([{"properties": {"addressPrefixes": ["fd00::/64", "10.0.0.0/28"]}}]);
        assert_eq!(choose(&full, RULES, "infra", &[]), None);
    }

    #[test]
    fn pool_is_respected_and_a_foreign_pool_gives_nothing() {
        let pool = |text: &str| NatSubnetRules {
            pool: text.parse().ok(),
            ..RULES
        };
        let chosen = choose(&network(&["10.0.0.0/16"], &[]), pool("10.0.7.0/24"), "infra", &[]).unwrap();
        assert!("10.0.7.0/24".parse::<Ipv4Net>().unwrap().contains(&chosen));
        assert_eq!(
            choose(&network(&["10.0.0.0/16"], &[]), pool("10.9.0.0/24"), "infra", &[]),
            None
        );
    }

    #[test]
    fn pool_that_is_larger_than_the_space_leaves_the_whole_space() {
        let wide = NatSubnetRules {
            pool: "10.0.0.0/8".parse().ok(),
            ..RULES
        };
        assert!(choose(&network(&["10.0.0.0/28"], &[]), wide, "infra", &[]).is_some());
    }

    #[test]
    fn highest_space_is_used_first() {
        let chosen = choose(
            &network(&["10.0.0.0/24", "10.9.0.0/24", "10.1.0.0/24"], &[]),
            RULES,
            "infra",
            &[],
        );
        assert!("10.9.0.0/24".parse::<Ipv4Net>().unwrap().contains(&chosen.unwrap()));
    }

    #[test]
    fn clusters_that_choose_at_the_same_time_seldom_choose_the_same() {
        let network = network(&["10.0.0.0/16"], &[]);
        let chosen = |n: u32| choose(&network, RULES, &format!("infra-{n}"), &[]);
        let different: std::collections::BTreeSet<_> = (0..64).map(chosen).collect();
        assert!(different.len() > 8, "{different:?}");
    }

    #[test]
    fn refused_prefix_is_not_chosen_again() {
        let network = network(&["10.0.0.0/24"], &[]);
        let first = choose(&network, RULES, "infra", &[]).unwrap();
        let refused = |layout| Refused { prefix: first, layout };
        for standing in [refused(None), refused(Some(layout(&network)))] {
            assert_ne!(choose(&network, RULES, "infra", &[standing]), Some(first));
        }
    }

    #[test]
    fn refused_prefix_may_be_taken_once_the_network_has_changed() {
        let small = network(&["10.0.0.0/28"], &[]);
        let only = choose(&small, RULES, "infra", &[]).unwrap();
        let other = network(&["10.0.0.0/28"], &["10.9.0.0/24"]);
        let refused = |body| Refused {
            prefix: only,
            layout: Some(layout(body)),
        };
        assert_eq!(choose(&small, RULES, "infra", &[refused(&small)]), None);
        assert_eq!(choose(&small, RULES, "infra", &[refused(&other)]), Some(only));
        let turned = network(&["10.1.0.0/16", "10.0.0.0/16"], &["10.0.1.0/24", "10.0.0.0/24"]);
        let same = network(&["10.0.0.0/16", "10.1.0.0/16"], &["10.0.0.0/24", "10.0.1.0/24"]);
        assert_eq!(layout(&turned), layout(&same), "the order says nothing");
    }

    #[test]
    fn every_version_of_the_program_chooses_alike() {
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
        let chosen = choose(&network(&["10.0.0.0/16"], &[]), RULES, "infra", &[]);
        assert_eq!(
            chosen.map(|prefix| prefix.to_string()).as_deref(),
            Some("10.0.255.32/28")
        );
    }

    proptest! {
        #[test]
        fn chosen_prefix_overlaps_nothing(occupied in proptest::collection::vec((0_u32..2048, 24_u8..=30), 0..12), length in 24_u8..=28, seed in ".*") {
            let prefixes: Vec<String> = occupied.iter()
                .map(|(at, len)| Ipv4Net::new((0x0a00_0000 + at).into(), *len).unwrap().trunc().to_string()).collect();
            let refs: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            let rules = NatSubnetRules { prefix_length: length, pool: None };
            if let Some(chosen) = choose(&network(&["10.0.0.0/21"], &refs), rules, &seed, &[]) {
                let apart = |p: &String| {
                    let used: Ipv4Net = p.parse().unwrap();
                    used.broadcast() < chosen.network() || chosen.broadcast() < used.network()
                };
                prop_assert!(prefixes.iter().all(apart), "{} in {:?}", chosen, prefixes);
                prop_assert_eq!(chosen.prefix_len(), length);
                prop_assert_eq!(chosen, chosen.trunc());
            }
        }
    }
}
