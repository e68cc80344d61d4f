//! Service and HostedControlPlane become an AzurePrivateLinkService.
