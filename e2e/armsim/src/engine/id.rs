//! ARM resource ids: what their parts are and when two are the same.
//!
//! Ids compare without regard to case and are shown as they were first written. Knows nothing of what a type allows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ARM id: a subscription, a resource group, a resource or a nested resource.
///
/// Compare with [`ResourceId::key`]; the text keeps its case.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ResourceId(String);

/// Why a text is no ARM id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an ARM id: expected /subscriptions/S[/resourceGroups/G][/providers/NAMESPACE/TYPE/NAME...]")]
pub struct BadId(String);

impl ResourceId {
    /// Accepts the three levels, with any number of nested types below a provider.
    pub(crate) fn parse(text: &str) -> Result<Self, BadId> {
        let bad = || BadId(text.to_owned());
        let trimmed = text.strip_suffix('/').unwrap_or(text);
        let parts: Vec<&str> = trimmed.strip_prefix('/').ok_or_else(bad)?.split('/').collect();
        let is = |at: usize, word: &str| parts.get(at).is_some_and(|part| part.eq_ignore_ascii_case(word));
        if parts.iter().any(|part| part.is_empty()) || !is(0, "subscriptions") {
            return Err(bad());
        }
        let provider = if is(2, "resourceGroups") { 4 } else { 2 };
        let typed = parts.len() > provider;
        if typed && (!is(provider, "providers") || parts.len() < provider + 4) {
            return Err(bad());
        }
        // Every level is a pair of a word and a name.
        if !parts.len().is_multiple_of(2) {
            return Err(bad());
        }
        Ok(Self(trimmed.to_owned()))
    }

    /// What is above all subscriptions; no text parses as it.
    pub(crate) fn root() -> Self {
        Self(String::new())
    }

    /// The form that ids are compared and stored by.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// As it was first written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is the same id.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.eq_ignore_ascii_case(text.strip_suffix('/').unwrap_or(text))
    }

    /// Whether it is `scope` or something in it.
    pub(crate) fn is_in(&self, scope: &Self) -> bool {
        let (own, scope) = (self.key(), scope.key());
        own.strip_prefix(&scope)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn part(&self, at: usize) -> Option<&str> {
        self.0.split('/').nth(at + 1)
    }

    /// The subscription's id.
    pub(crate) fn subscription(&self) -> &str {
        self.part(1).unwrap_or_default()
    }

    /// The resource group's name, if the id is in one.
    pub(crate) fn resource_group(&self) -> Option<&str> {
        self.part(2)
            .filter(|word| word.eq_ignore_ascii_case("resourceGroups"))
            .and_then(|_| self.part(3))
    }

    /// The id of the resource group that the id is in.
    pub(crate) fn group_id(&self) -> Option<Self> {
        let group = self.resource_group()?;
        Some(Self(format!(
            "/subscriptions/{}/resourceGroups/{group}",
            self.subscription()
        )))
    }

    /// The last name.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Namespace and types, as written: `Microsoft.Network/virtualNetworks/subnets`.
    pub(crate) fn resource_type(&self) -> String {
        let Some(provider) = self.provider_part() else {
            let group = self.resource_group().is_some();
            return if group {
                "Microsoft.Resources/resourceGroups"
            } else {
                "Microsoft.Resources/subscriptions"
            }
            .to_owned();
        };
        let rest: Vec<&str> = self.0.split('/').skip(provider + 2).collect();
        let mut words = vec![rest.first().copied().unwrap_or_default()];
        words.extend(rest.iter().skip(1).step_by(2));
        words.join("/")
    }

    fn provider_part(&self) -> Option<usize> {
        let at = if self.resource_group().is_some() { 4 } else { 2 };
        self.part(at).map(|_| at)
    }

    /// The types and names below the namespace, for messages: `virtualNetworks/V/subnets/S`.
    pub(crate) fn typed_name(&self) -> String {
        let skip = self.provider_part().map_or(0, |at| at + 3);
        self.0.split('/').skip(skip).collect::<Vec<_>>().join("/")
    }

    /// The resource that this one is nested in; nothing for a top-level resource.
    pub(crate) fn parent(&self) -> Option<Self> {
        let provider = self.provider_part()?;
        let parts = self.0.split('/').count() - 1;
        if parts < provider + 6 {
            return None;
        }
        let mut cut = self.0.rsplitn(3, '/');
        cut.nth(2).map(|parent| Self(parent.to_owned()))
    }

    /// A nested resource of this one.
    pub(crate) fn child(&self, kind: &str, name: &str) -> Self {
        Self(format!("{}/{kind}/{name}", self.0))
    }

    /// A resource in the same group.
    pub(crate) fn sibling(&self, resource_type: &str, name: &str) -> Self {
        let group = self.resource_group().unwrap_or_default();
        Self(format!(
            "/subscriptions/{}/resourceGroups/{group}/providers/{resource_type}/{name}",
            self.subscription()
        ))
    }

    /// The same id with ARM's own spelling of its fixed words and of `resource_type`.
    pub(crate) fn spelled(&self, resource_type: &str) -> Self {
        let mut types = resource_type.split('/');
        let mut parts: Vec<&str> = self.0.split('/').skip(1).collect();
        let provider = self.provider_part();
        for (at, part) in parts.iter_mut().enumerate() {
            match at {
                0 => *part = "subscriptions",
                2 if provider != Some(2) => *part = "resourceGroups",
                _ => {}
            }
            let Some(provider) = provider else { continue };
            if at == provider {
                *part = "providers";
            } else if at == provider + 1 || (at > provider && (at - provider) % 2 == 0) {
                *part = types.next().unwrap_or(part);
            }
        }
        Self(format!("/{}", parts.join("/")))
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for ResourceId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        Self::parse(&text)
    }
}

impl From<ResourceId> for String {
    fn from(id: ResourceId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBNET: &str = "/subscriptions/s/resourcegroups/RG/providers/microsoft.network/virtualnetworks/V/subnets/N";

    #[test]
    fn parts_of_a_nested_resource() {
        let id = ResourceId::parse(SUBNET).unwrap();
        assert_eq!(id.subscription(), "s");
        assert_eq!(id.resource_group(), Some("RG"));
        assert_eq!(id.resource_type(), "microsoft.network/virtualnetworks/subnets");
        assert_eq!(id.name(), "N");
        let parent = id.parent().unwrap();
        assert_eq!(parent.name(), "V");
        assert!(parent.parent().is_none());
        assert_eq!(id.typed_name(), "virtualnetworks/V/subnets/N");
    }

    #[test]
    fn spelling_is_azures_and_names_stay() {
        let id = ResourceId::parse(SUBNET)
            .unwrap()
            .spelled("Microsoft.Network/virtualNetworks/subnets");
        assert_eq!(
            id.as_str(),
            "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/virtualNetworks/V/subnets/N"
        );
        assert_eq!(id.key(), ResourceId::parse(SUBNET).unwrap().key());
        let group = ResourceId::parse("/Subscriptions/s/resourcegroups/RG").unwrap();
        assert_eq!(
            group.spelled("Microsoft.Resources/resourceGroups").as_str(),
            "/subscriptions/s/resourceGroups/RG"
        );
    }

    #[test]
    fn broken_ids_are_refused() {
        for text in [
            "",
            "/",
            "x",
            "/subscriptions",
            "/subscriptions//resourceGroups/g",
            "/subscriptions/s/resourceGroups",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks",
            "/tenants/t",
        ] {
            assert!(ResourceId::parse(text).is_err(), "{text}");
        }
    }
}
