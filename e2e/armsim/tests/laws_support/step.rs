//! One step of a run as nine bytes, and what it means: which call, on what, by whom. All zeros are a short wait.
//!
//! Bytes because the fuzzer has nothing else; the meaning of each is spread so that most calls are good ones and names
//! collide often.

use std::fmt;

use super::cloud::{SUBSCRIPTIONS, owner};

/// The types that are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Group,
    Vnet,
    Subnet,
    SecurityGroup,
    Balancer,
    Nic,
    Service,
    Connection,
    Endpoint,
    ZoneGroup,
    Zone,
    Link,
    Record,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Wait,
    Put(What),
    Patch(What),
    Delete(What),
    Get(What),
    List(What),
    Poll,
    Faults,
    Drift,
}

use Act::{Delete, Drift, Faults, Get, List, Patch, Poll, Put, Wait};
use What::{
    Balancer, Connection, Endpoint, Group, Link, Nic, Record, SecurityGroup, Service, Subnet, Vnet, Zone, ZoneGroup,
};

/// How many of 256 steps do what.
const ACTS: [(u16, Act); 41] = [
    (44, Wait),
    (4, Put(Group)),
    (10, Put(Vnet)),
    (16, Put(Subnet)),
    (3, Put(SecurityGroup)),
    (12, Put(Balancer)),
    (6, Put(Nic)),
    (18, Put(Service)),
    (24, Put(Endpoint)),
    (12, Put(Connection)),
    (6, Put(ZoneGroup)),
    (8, Put(Zone)),
    (12, Put(Link)),
    (8, Put(Record)),
    (1, Patch(Group)),
    (2, Patch(Vnet)),
    (1, Patch(Balancer)),
    (2, Patch(Service)),
    (1, Patch(Endpoint)),
    (1, Patch(SecurityGroup)),
    (2, Patch(Zone)),
    (2, Patch(Link)),
    (2, Patch(Record)),
    (2, Delete(Group)),
    (3, Delete(Vnet)),
    (4, Delete(Subnet)),
    (2, Delete(SecurityGroup)),
    (3, Delete(Balancer)),
    (2, Delete(Nic)),
    (6, Delete(Service)),
    (5, Delete(Connection)),
    (6, Delete(Endpoint)),
    (2, Delete(ZoneGroup)),
    (3, Delete(Zone)),
    (4, Delete(Link)),
    (2, Delete(Record)),
    (3, Get(Endpoint)),
    (4, List(Service)),
    (4, Poll),
    (2, Faults),
    (2, Drift),
];

/// One step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Step {
    act: u8,
    who: u8,
    subscription: u8,
    group: u8,
    parent: u8,
    name: u8,
    /// Chooses between forms of a body.
    pub body: u8,
    /// Chooses what a body refers to.
    pub refers: u8,
    /// Chooses headers and the spelling of the path.
    pub form: u8,
}

/// What a path is made of.
#[derive(Clone, Copy, Debug)]
pub struct PathParts {
    pub subscription: usize,
    pub group: usize,
    pub parent: usize,
    pub name: usize,
}

impl From<[u8; 9]> for Step {
    fn from(bytes: [u8; 9]) -> Self {
        let [act, who, subscription, group, parent, name, body, refers, form] = bytes;
        Self {
            act,
            who,
            subscription,
            group,
            parent,
            name,
            body,
            refers,
            form,
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            act,
            who,
            subscription,
            group,
            parent,
            name,
            body,
            refers,
            form,
        } = self;
        let bytes = [act, who, subscription, group, parent, name, body, refers, form];
        write!(out, "{:?} from {bytes:?}", self.act())
    }
}

impl Step {
    pub fn act(&self) -> Act {
        let mut left = u16::from(self.act);
        for (share, act) in ACTS {
            if left < share {
                return act;
            }
            left -= share;
        }
        Wait
    }

    pub fn path_parts(&self) -> PathParts {
        PathParts {
            subscription: match self.subscription {
                0..=139 => 0,
                140..=219 => 1,
                _ => 2,
            },
            group: usize::from(self.group.saturating_sub(200) / 28),
            parent: usize::from(self.parent.saturating_sub(150) / 40),
            name: usize::from(self.name) % 4,
        }
    }

    /// This step in another subscription, by its owner, with references to nothing of others.
    pub fn alone_in(mut self, subscription: usize) -> Self {
        self.subscription = [0, 140, 220][subscription];
        self.who = 0;
        if self.act() == Put(Endpoint) {
            self.refers %= 110;
        }
        self
    }

    /// Whether somebody calls ARM.
    pub fn is_call(&self) -> bool {
        !matches!(self.act(), Wait | Poll | Faults | Drift)
    }

    /// A wait of that many tenths of seconds.
    pub fn wait_of(tenths: u8) -> Self {
        Self::from([0, 0, 0, 0, 0, 0, 0, tenths, 0])
    }

    /// The caller: mostly one who may.
    pub fn who(&self) -> usize {
        match self.who {
            0..=235 => owner(self.path_parts().subscription),
            236..=247 => 2,
            248..=251 => 3,
            _ => 1 - owner(self.path_parts().subscription),
        }
    }

    /// Tenths of seconds.
    pub fn wait(&self) -> i64 {
        let short = i64::from(self.refers) + 1;
        match self.body {
            0..=159 => short,
            160..=247 => short * 2,
            _ => short * 100,
        }
    }
}

impl PathParts {
    pub fn group_id(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/rg{}",
            SUBSCRIPTIONS[self.subscription], self.group
        )
    }

    /// `SUBSCRIPTION/GROUP/providers/Microsoft.Network`.
    pub fn network(&self) -> String {
        format!("{}/providers/Microsoft.Network", self.group_id())
    }

    /// The path that is called. A connection's name is for the caller to find.
    pub fn path(&self, what: What) -> String {
        let (net, parent, name) = (self.network(), self.parent, self.name);
        let few = name % 3;
        match what {
            Group => self.group_id(),
            Vnet => format!("{net}/virtualNetworks/v{few}"),
            Subnet => format!("{net}/virtualNetworks/v{parent}/subnets/s{name}"),
            SecurityGroup => format!("{net}/networkSecurityGroups/g{}", name % 2),
            Balancer => format!("{net}/loadBalancers/l{}", name % 2),
            Nic => format!("{net}/networkInterfaces/n{few}"),
            Service | Connection => format!("{net}/privateLinkServices/p{name}"),
            Endpoint => format!("{net}/privateEndpoints/e{name}"),
            ZoneGroup => format!("{net}/privateEndpoints/e{name}/privateDnsZoneGroups/default"),
            Zone => format!("{net}/privateDnsZones/{}", zone(name)),
            Link => format!("{net}/privateDnsZones/{}/virtualNetworkLinks/k{few}", zone(parent)),
            Record => format!(
                "{net}/privateDnsZones/{}/{}",
                zone(parent),
                ["A/a", "A/b", "CNAME/a", "TXT/c"][name]
            ),
        }
    }
}

/// Two of them are nested names, which may share a VNet.
pub fn zone(number: usize) -> &'static str {
    ["z0.com", "a.z0.com", "privatelink.z1.net", "z3.org"][number % 4]
}
