//! From a name to addresses, as Azure's resolver answers a machine in the VNet.
//!
//! The most specific zone with a completed link answers alone, whatever it holds: a shorter zone or public DNS is not
//! asked for a name that it lacks. Public DNS is not simulated: where it would be asked, that is the reason.

use std::net::Ipv4Addr;

use super::HopKind;
use super::walk::{Broken, Step, Walk, broken, list, text};
use crate::dns::record::RecordType;
use crate::dns::{links, record_sets, resolve, zone};
use crate::engine::resource::Resource;

/// Azure's own resolver: a VNet that lists it among its DNS servers still sees private zones.
const AZURE_RESOLVER: &str = "168.63.129.16";
/// CNAMEs followed before a name is given up.
const MOST_ALIASES: usize = 8;

/// What a record set answers for a name.
enum Answer {
    Addresses(Vec<Ipv4Addr>),
    Alias(String),
}

/// The zone that answers, and its link to the VNet.
type Linked<'a> = (&'a Resource, &'a Resource);

impl<'a> Walk<'a> {
    /// Private zones are only visible through Azure's resolver.
    pub(super) fn asks_azure_dns(&self) -> Step<()> {
        let Some(vnet) = self.cx.state.store.find(self.vnet) else {
            return broken(
                HopKind::Zone,
                format!("the virtual network {} does not exist", self.vnet),
            );
        };
        let servers: Vec<&str> = list(&vnet.property("dhcpOptions")["dnsServers"]).map(text).collect();
        if servers.is_empty() || servers.contains(&AZURE_RESOLVER) {
            return Ok(());
        }
        let servers = servers.join(", ");
        let why = format!("the virtual network asks its own DNS servers ({servers}), which see no private zones");
        broken(HopKind::Zone, why)
    }

    /// The addresses that a name has, along its aliases.
    pub(super) fn addresses_of(&mut self, name: &str) -> Step<Vec<Ipv4Addr>> {
        let mut name = resolve::normal(name);
        let mut alias_of = None;
        for _ in 0..MOST_ALIASES {
            let linked = self
                .answering_zone(&name)
                .map_err(|broken| along(broken, alias_of.as_deref()))?;
            match self.record_in(linked, &name)? {
                Answer::Addresses(addresses) => return Ok(addresses),
                Answer::Alias(target) => alias_of = Some(std::mem::replace(&mut name, resolve::normal(&target))),
            }
        }
        broken(
            HopKind::Record,
            format!("more than {MOST_ALIASES} CNAMEs follow one another"),
        )
    }

    fn answering_zone(&mut self, name: &str) -> Step<Linked<'a>> {
        let linked: Vec<Linked<'a>> = self.linked(name).filter(|(_, link)| self.resolves(link)).collect();
        if let Some(best) = resolve::most_specific(linked.iter().map(|(zone, _)| zone.id.name()), name) {
            let (zone, link) = linked[best];
            self.hold(HopKind::Zone, zone, format!("{} answers for {name}", zone.id.name()));
            self.hold(HopKind::Link, link, "Completed");
            return Ok((zone, link));
        }
        let holding = self
            .all(zone::TYPE)
            .filter(|zone| resolve::relative(name, zone.id.name()).is_some());
        let zones: Vec<&Resource> = holding.collect();
        let Some(best) = resolve::most_specific(zones.iter().map(|zone| zone.id.name()), name) else {
            return broken(HopKind::Zone, format!("no private zone holds {name}"));
        };
        let mut zone = zones[best];
        let mut why = format!("{} is not linked to the virtual network", zone.id.name());
        // One whose link is on its way is more to the point than one without.
        if let Some((waiting, link)) = self.linked(name).max_by_key(|(zone, _)| zone.id.name().len()) {
            zone = waiting;
            why = format!("{} is not completed yet", link.id);
        }
        self.hold(HopKind::Zone, zone, format!("{} holds {name}", zone.id.name()));
        broken(HopKind::Link, why)
    }

    /// The zones that hold `name` and have a link to the VNet, whatever its state.
    fn linked(&self, name: &str) -> impl Iterator<Item = Linked<'a>> + use<'a> {
        let (cx, name) = (self.cx, name.to_owned());
        let vnet = cx.state.store.find(self.vnet).into_iter();
        let links = vnet.flat_map(|vnet| links::to(&cx.state.store, &vnet.id));
        let linked = links.filter_map(|link| Some((cx.state.store.get(&link.id.parent()?)?, link)));
        linked.filter(move |(zone, _)| resolve::relative(&name, zone.id.name()).is_some())
    }

    fn resolves(&self, link: &Resource) -> bool {
        links::resolves(link, self.cx.now, self.cx.state.switches.link_complete_lag_s)
    }

    fn record_in(&mut self, (zone, link): Linked<'a>, name: &str) -> Step<Answer> {
        let relative = resolve::relative(name, zone.id.name()).unwrap_or_default();
        let sets: Vec<&Resource> = record_sets::of(&self.cx.state.store, &zone.id).collect();
        let names: Vec<&str> = sets.iter().map(|set| set.id.name()).collect();
        let Some(answering) = resolve::answering(&names, &relative) else {
            return broken(HopKind::Record, self.why_missing((zone, link), &names, &relative, name));
        };
        let of_type = |kind: RecordType| self.cx.state.store.get(&record_sets::id_of(&zone.id, kind, answering));
        if let Some(alias) = of_type(RecordType::Cname) {
            let target = text(&alias.property("cnameRecord")["cname"]).to_owned();
            if target.is_empty() {
                return broken(HopKind::Record, format!("{} has no records", alias.id));
            }
            self.hold(HopKind::Record, alias, format!("{name} is an alias of {target}"));
            return Ok(Answer::Alias(target));
        }
        let Some(set) = of_type(RecordType::A) else {
            return broken(
                HopKind::Record,
                format!("{} has no A record for {name}", zone.id.name()),
            );
        };
        let values: Vec<&str> = list(set.property("aRecords"))
            .map(|record| text(&record["ipv4Address"]))
            .collect();
        let addresses: Vec<Ipv4Addr> = values.iter().filter_map(|value| value.parse().ok()).collect();
        if addresses.is_empty() {
            return broken(HopKind::Record, format!("{} has no records", set.id));
        }
        self.hold(HopKind::Record, set, format!("{name} is {}", values.join(", ")));
        Ok(Answer::Addresses(addresses))
    }

    /// What becomes of a name that its zone lacks, and who would have known it.
    fn why_missing(&self, (zone, link): Linked<'a>, names: &[&str], relative: &str, name: &str) -> String {
        let why = format!("{} has no record for {name}", zone.id.name());
        if links::falls_back(link) && !resolve::exists(names, relative) {
            return format!("{why}, and its link sends the question on to public DNS, which is not simulated");
        }
        let knows = |shorter: &Resource| {
            let relative = resolve::relative(name, shorter.id.name()).unwrap_or_default();
            let sets = record_sets::of(&self.cx.state.store, &shorter.id);
            let names: Vec<&str> = sets.map(|set| set.id.name()).collect();
            resolve::answering(&names, &relative).is_some()
        };
        let shorter = self
            .linked(name)
            .find(|(other, _)| !other.id.is(zone.id.as_str()) && knows(other));
        match shorter {
            Some((shorter, _)) => format!("{why}; {}, which has one, is not asked", shorter.id.name()),
            None => format!("{why}, and nobody else is asked"),
        }
    }
}

/// The reason with the alias that led there.
fn along(mut broken: Broken, alias_of: Option<&str>) -> Broken {
    if let Some(alias) = alias_of {
        broken.why.push_str(&format!(", the target of the CNAME {alias}"));
        if broken.hop == HopKind::Zone {
            broken.why.push_str("; public DNS is not simulated");
        }
    }
    broken
}
