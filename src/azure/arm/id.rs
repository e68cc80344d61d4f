//! ARM ids, subscriptions and regions: parsed once, printed in the casing ARM documents, compared the way ARM does.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::kinds::Kind;

/// Why a text is not an ARM id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is not `/subscriptions/…/resourceGroups/…/providers/…`.
    #[error("not an ARM resource id")]
    Form,
    /// A segment is empty, too long, or has characters that no ARM name has.
    #[error("the ARM id has an unusable segment")]
    Segment,
    /// The id is of another resource type than the expected one.
    #[error("not the id of a {0}")]
    OtherKind(&'static str),
    /// The name has more characters than this, which Azure does not take here.
    #[error("the name is longer than {0} characters")]
    NameTooLong(usize),
}

/// Compares two names as ARM does: without regard to case. No letter beyond ASCII equals one of ASCII.
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.chars().map(lower_letter).eq(b.chars().map(lower_letter)))
}

/// A text in lower case. Two names have one lower case exactly if they are the [`same`].
pub fn lower(text: &str) -> String {
    text.chars().map(lower_letter).collect()
}

fn lower_letter(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if c.is_ascii() || !one.is_ascii() => one,
        _ => c,
    }
}

/// Whether a resource group can have this name; letters and digits may be of any script.
/// Source: <https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules>
pub fn is_group_name(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "-_.()".contains(c);
    (1..=90).contains(&text.chars().count()) && text.chars().all(allowed) && !text.ends_with('.')
}

/// A subscription id, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionId(String);

impl SubscriptionId {
    /// Takes any text that can be a path segment, in lower case.
    ///
    /// # Errors
    /// The text cannot be a path segment.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        usable(text)
            .then(|| Self(text.to_ascii_lowercase()))
            .ok_or(IdError::Segment)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A region as ARM's ids and bodies name it: lower case, no spaces (`East US` is `eastus`).
pub fn location(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The id of a resource in a resource group.
///
/// Two ids are equal when they differ in case only. Printed with ARM's documented casing of the fixed segments
/// and the given casing of the names.
#[derive(Debug, Clone)]
pub struct ResourceId {
    subscription: SubscriptionId,
    group: String,
    provider: Segment,
    /// (type, name), outermost first; never empty.
    path: Vec<(Segment, String)>,
}

/// A fixed segment. That of a known kind takes no memory: there are tens of thousands of ids.
type Segment = Cow<'static, str>;

impl ResourceId {
    /// The id of a resource of `kind`; `names` outermost first, as many as the kind's type has levels.
    pub fn new(kind: Kind, subscription: &SubscriptionId, group: &str, names: &[&str]) -> Result<Self, IdError> {
        let types = kind.spec().path;
        if types.len() != names.len() || !is_group_name(group) || !names.iter().all(|n| usable(n)) {
            return Err(IdError::Segment);
        }
        let path = types
            .iter()
            .zip(names)
            .map(|(t, n)| (Cow::Borrowed(*t), (*n).to_owned()))
            .collect();
        Self {
            subscription: subscription.clone(),
            group: group.to_owned(),
            provider: Cow::Borrowed(kind.spec().provider),
            path,
        }
        .checked(kind)
    }

    /// Parses an id of any type inside a resource group.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let segments: Vec<&str> = text.strip_prefix('/').ok_or(IdError::Form)?.split('/').collect();
        let [
            subscriptions,
            subscription,
            groups,
            group,
            providers,
            provider,
            path @ ..,
        ] = segments.as_slice()
        else {
            return Err(IdError::Form);
        };
        if !same(subscriptions, "subscriptions") || !same(groups, "resourceGroups") || !same(providers, "providers") {
            return Err(IdError::Form);
        }
        if path.is_empty() || !path.len().is_multiple_of(2) {
            return Err(IdError::Form);
        }
        if !is_group_name(group) || !path.iter().chain([provider]).all(|s| usable(s)) {
            return Err(IdError::Segment);
        }
        let path = path
            .chunks(2)
            .map(|pair| (Cow::Owned(pair[0].to_owned()), pair[1].to_owned()))
            .collect();
        let id = Self {
            subscription: SubscriptionId::parse(subscription)?,
            group: (*group).to_owned(),
            provider: Cow::Owned((*provider).to_owned()),
            path,
        };
        Ok(id.canonical())
    }

    /// Parses an id that has to be one of `kind`.
    pub fn parse_as(kind: Kind, text: &str) -> Result<Self, IdError> {
        Self::parse(text)?.checked(kind)
    }

    fn checked(self, kind: Kind) -> Result<Self, IdError> {
        if !self.is(kind) {
            return Err(IdError::OtherKind(kind.label()));
        }
        match kind.spec().max_name {
            Some(longest) if self.name().chars().count() > longest => Err(IdError::NameTooLong(longest)),
            _ => Ok(self),
        }
    }

    /// Gives the fixed segments of known types their documented casing.
    fn canonical(mut self) -> Self {
        if let Some(spec) = self.kind().map(Kind::spec) {
            self.provider = Cow::Borrowed(spec.provider);
            for (slot, name) in self.path.iter_mut().zip(spec.path) {
                slot.0 = Cow::Borrowed(name);
            }
        }
        self
    }

    /// Whether this is the id of a resource of `kind`.
    pub fn is(&self, kind: Kind) -> bool {
        let spec = kind.spec();
        same(spec.provider, &self.provider)
            && spec.path.len() == self.path.len()
            && spec.path.iter().zip(&self.path).all(|(t, (u, _))| same(t, u))
    }

    /// The kind that this is the id of a resource of; none if it is of no known kind.
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.is(*kind))
    }

    /// The subscription that it is in.
    pub fn subscription(&self) -> &SubscriptionId {
        &self.subscription
    }

    /// The resource group's name.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The resource's own name, without its parents'.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", |(_, name)| name)
    }

    /// The id of the resource that this one is nested in.
    pub fn parent(&self) -> Option<Self> {
        let (_, parents) = self.path.split_last()?;
        (!parents.is_empty()).then(|| {
            Self {
                path: parents.to_vec(),
                ..self.clone()
            }
            .canonical()
        })
    }

    /// Whether this is the id of a resource nested in `outer`, at any depth.
    pub fn is_in(&self, outer: &Self) -> bool {
        self.path.len() > outer.path.len()
            && self.subscription == outer.subscription
            && same(&self.group, &outer.group)
            && same(&self.provider, &outer.provider)
            && self.starts_with(&outer.path)
    }

    fn starts_with(&self, path: &[(Segment, String)]) -> bool {
        self.path
            .iter()
            .zip(path)
            .all(|(a, b)| same(&a.0, &b.0) && same(&a.1, &b.1))
    }

    /// The id of a resource nested in this one.
    pub fn child(&self, kind: Kind, name: &str) -> Result<Self, IdError> {
        let mut names: Vec<&str> = self.path.iter().map(|(_, n)| n.as_str()).collect();
        names.push(name);
        Self::new(kind, &self.subscription, &self.group, &names)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "/subscriptions/{}/resourceGroups/{}/providers/{}",
            self.subscription, self.group, self.provider
        )?;
        self.path
            .iter()
            .try_for_each(|(kind, name)| write!(f, "/{kind}/{name}"))
    }
}

impl PartialEq for ResourceId {
    fn eq(&self, other: &Self) -> bool {
        self.subscription == other.subscription
            && same(&self.group, &other.group)
            && same(&self.provider, &other.provider)
            && self.path.len() == other.path.len()
            && self.starts_with(&other.path)
    }
}

impl Eq for ResourceId {}

impl Hash for ResourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        lower(&self.to_string()).hash(state);
    }
}

/// Whether a text can be one segment of an ARM path: it has only characters that Azure allows in names, and nothing
/// that a URL would read otherwise.
fn usable(segment: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.()*@".contains(c);
    !segment.is_empty() && segment.len() <= 260 && segment != "." && segment != ".." && segment.chars().all(allowed)
}

#[cfg(test)]
mod tests;
