//! What some layers or files must not use.

use super::Layer::{self, Data, Decide, Effect, Run, Wire};
use super::{begins, fits};

/// Paths that some files must not use.
pub(super) struct Ban {
    /// The layers, or modules as in [`LAYERS`], that it binds, except some modules.
    layers: &'static [Layer],
    modules: &'static [&'static str],
    but_modules: &'static [&'static str],
    /// A path and all below it; `…::name` is a path that ends so.
    paths: &'static [&'static str],
    but_paths: &'static [&'static str],
    pub(super) why: &'static str,
}

pub(super) const BANS: &[Ban] = &[
    Ban {
        modules: &[],
        layers: &[Data, Decide],
        paths: &[
            "tokio",
            "futures",
            "reqwest",
            "hyper",
            "axum",
            "tower",
            "azure_core",
            "azure_identity",
            "std::fs",
            "std::process",
            "std::thread",
            "std::net::TcpStream",
            "std::net::TcpListener",
            "std::net::UdpSocket",
            "kube::Api",
            "kube::Client",
            "kube::Config",
            "kube::api",
            "kube::client",
            "kube::config",
            "kube::runtime",
        ],
        but_modules: &[],
        but_paths: &["kube::api::ObjectMeta"],
        why: "data and decisions do no I/O",
    },
    Ban {
        modules: &[],
        layers: &[Data, Decide],
        paths: &[
            "…::Instant::now",
            "…::SystemTime::now",
            "…::Timestamp::now",
            "…::Zoned::now",
        ],
        but_modules: &[],
        but_paths: &[],
        why: "data and decisions have no clock: the time comes in as a value",
    },
    Ban {
        modules: &[],
        layers: &[Data, Decide],
        paths: &["tracing"],
        but_modules: &[],
        but_paths: &[],
        why: "data and decisions do not log",
    },
    Ban {
        modules: &[],
        layers: &[Wire],
        paths: &[
            "kube",
            "k8s_openapi",
            "crate::api::AWSEndpointService",
            "crate::api::aws_endpoint_service",
            "crate::api::AzurePrivateLinkService",
            "crate::api::private_link_service",
            "crate::api::HostedCluster",
            "crate::api::HostedControlPlane",
            "crate::api::NodePool",
            "crate::api::hypershift",
        ],
        but_modules: &[],
        but_paths: &[],
        why: "the wire knows no Kubernetes and no custom resource",
    },
    Ban {
        modules: &["hypershift"],
        layers: &[],
        paths: &["crate::controllers", "crate::observer"],
        but_modules: &[],
        but_paths: &[],
        why: "src/hypershift knows no controller",
    },
    Ban {
        modules: &["runtime"],
        layers: &[],
        paths: &["crate"],
        but_modules: &[],
        but_paths: &["crate::runtime", "crate::metrics"],
        why: "src/runtime knows no object of ours and no cloud",
    },
    Ban {
        modules: &[
            "controllers/abandon",
            "controllers/awaiting",
            "controllers/cloud",
            "controllers/cloud_access",
            "controllers/conclusion",
            "controllers/contention",
            "controllers/context",
            "controllers/custom_resource",
            "controllers/decision",
            "controllers/driver",
            "controllers/event",
            "controllers/facts",
            "controllers/observe",
            "controllers/outcome",
            "controllers/preview",
            "controllers/reconciler",
            "controllers/report",
            "controllers/step_problem",
            "controllers/urgency",
            "controllers/write_status",
            "hypershift",
            "observer",
        ],
        layers: &[],
        paths: &[
            "crate::aws",
            "crate::azure",
            "crate::controllers::aws",
            "crate::controllers::azure",
            "crate::hypershift::aws",
            "crate::hypershift::azure",
        ],
        but_modules: &[
            "controllers/custom_resource/aws_endpoint_service",
            "controllers/custom_resource/azure_private_link_service",
            "hypershift/aws",
            "hypershift/azure",
            // HostedClusters of all clouds have one index, so it knows what they claim on each.
            "hypershift/claims",
            // The operator's file has one entry for the clusters of a namespace, on whichever cloud they are.
            "hypershift/scopes",
            "observer/aws",
            "observer/azure",
        ],
        but_paths: &[],
        why: "what all controllers share is about any cloud",
    },
    Ban {
        modules: &[
            "controllers/aws",
            "controllers/endpoint_service",
            "controllers/vpc_endpoint",
            "hypershift/aws",
            "observer/aws",
        ],
        layers: &[],
        paths: &[
            "crate::azure",
            "crate::controllers::azure",
            "crate::controllers::private_endpoint",
            "crate::controllers::private_link_service",
            "crate::hypershift::azure",
            "crate::observer::azure",
        ],
        but_modules: &[],
        but_paths: &[],
        why: "what is about one cloud uses nothing of another",
    },
    Ban {
        modules: &[
            "controllers/azure",
            "controllers/private_endpoint",
            "controllers/private_link_service",
            "hypershift/azure",
            "observer/azure",
        ],
        layers: &[],
        paths: &[
            "crate::aws",
            "crate::controllers::aws",
            "crate::controllers::endpoint_service",
            "crate::controllers::vpc_endpoint",
            "crate::hypershift::aws",
            "crate::observer::aws",
        ],
        but_modules: &[],
        but_paths: &[],
        why: "what is about one cloud uses nothing of another",
    },
    Ban {
        modules: &[],
        layers: &[Data, Decide, Wire, Effect],
        paths: &["clap"],
        but_modules: &[],
        but_paths: &[],
        why: "only the top layer knows flags",
    },
    Ban {
        modules: &[],
        layers: &[Data, Decide, Wire, Effect, Run],
        paths: &["std::env"],
        but_modules: &["config"],
        but_paths: &["std::env::args_os"],
        why: "only the configuration reads the environment",
    },
    Ban {
        modules: &["controllers/private_link_service"],
        layers: &[],
        paths: &["crate::controllers::private_endpoint"],
        but_modules: &[],
        but_paths: &[],
        why: "private_link_service and private_endpoint meet in the custom resource's status only",
    },
    Ban {
        modules: &["controllers/private_endpoint"],
        layers: &[],
        paths: &["crate::controllers::private_link_service"],
        but_modules: &[],
        but_paths: &[],
        why: "private_link_service and private_endpoint meet in the custom resource's status only",
    },
];

impl Ban {
    pub(super) fn covers(&self, file: &str, layer: Layer) -> bool {
        let one_of = |modules: &[&str]| modules.iter().any(|module| fits(module, file));
        (self.layers.contains(&layer) || one_of(self.modules)) && !one_of(self.but_modules)
    }

    pub(super) fn hits(&self, path: &[String]) -> bool {
        let one_of = |paths: &[&str]| paths.iter().any(|pattern| begins(pattern, path));
        one_of(self.paths) && !one_of(self.but_paths)
    }
}
