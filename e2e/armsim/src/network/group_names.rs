//! The public names that Azure's own services have, by the group of their private link resource.
//!
//! A private endpoint knows its names only by these; a Private Link Service has none.

use crate::engine::id::ResourceId;

/// The name of a service's resource, for the few types of service that endpoints in recorded traffic are for.
pub(crate) fn fqdn(service: &ResourceId, group: &str) -> Option<String> {
    let name = service.name();
    let group = group.to_ascii_lowercase();
    match service.resource_type().to_ascii_lowercase().as_str() {
        "microsoft.storage/storageaccounts" => {
            let (group, suffix) = match group.strip_suffix("_secondary") {
                Some(group) => (group, "-secondary"),
                None => (group.as_str(), ""),
            };
            let known = ["blob", "dfs", "file", "queue", "table", "web"].contains(&group);
            known.then(|| format!("{name}{suffix}.{group}.core.windows.net"))
        }
        "microsoft.keyvault/vaults" if group == "vault" => Some(format!("{name}.vault.azure.net")),
        "microsoft.sql/servers" if group == "sqlserver" => Some(format!("{name}.database.windows.net")),
        _ => None,
    }
}

/// The record set's name for `fqdn` in a zone: a `privatelink.` zone stands for the names without that label.
pub(crate) fn in_zone(fqdn: &str, zone: &str) -> Option<String> {
    let public = zone.strip_prefix("privatelink.").unwrap_or(zone);
    let labels = fqdn.strip_suffix(public)?.strip_suffix('.')?;
    Some(labels.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Microsoft.Storage/storageAccounts", "blob", Some("n.blob.core.windows.net"))]
    #[case(
        "Microsoft.Storage/storageAccounts",
        "Blob_Secondary",
        Some("n-secondary.blob.core.windows.net")
    )]
    #[case("Microsoft.Storage/storageAccounts", "other", None)]
    #[case("Microsoft.KeyVault/vaults", "vault", Some("n.vault.azure.net"))]
    #[case("Microsoft.Network/privateLinkServices", "", None)]
    fn names_by_group(#[case] resource_type: &str, #[case] group: &str, #[case] expected: Option<&str>) {
        let id = format!("/subscriptions/s/resourceGroups/g/providers/{resource_type}/n");
        assert_eq!(fqdn(&ResourceId::parse(&id).unwrap(), group).as_deref(), expected);
    }

    #[rstest]
    #[case("privatelink.blob.core.windows.net", Some("n"))]
    #[case("blob.core.windows.net", Some("n"))]
    #[case("core.windows.net", Some("n.blob"))]
    #[case("privatelink.file.core.windows.net", None)]
    #[case("ob.core.windows.net", None)]
    fn names_in_zones(#[case] zone: &str, #[case] expected: Option<&str>) {
        assert_eq!(in_zone("n.blob.core.windows.net", zone).as_deref(), expected);
    }
}
