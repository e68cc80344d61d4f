//! The programs of a control plane, with their flags, and the users that they know.

use std::path::Path;

use anyhow::Result;

use super::stored::Etcd;
use super::{ControlPlane, Listens, free_port};
use crate::node::{NODE, SERVICE_NETWORK};
use crate::pki::{Authority, write_signing_key};
use crate::process::{Process, Program};

/// Logs every request once, when it is answered: who, what, and the result. The API server writes the line before it
/// sends the answer, so a client that has the answer finds the line.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// Collect garbage a third as often as by default: a fifth less work, for 180 MiB more of the API server.
const GOGC: &str = "300";

/// The first address of [`SERVICE_NETWORK`], which the API server has as a Service.
const KUBERNETES: &str = "10.96.0.1";

/// The user name with which the API server calls a kubelet.
pub(crate) const KUBELET_CLIENT: &str = "kube-apiserver";

/// A user with a token, and with a kubeconfig whose file is named `file`.
pub(super) struct User {
    pub(super) file: &'static str,
    name: String,
    group: &'static str,
    pub(super) token: String,
}

/// The users of a control plane, the administrator first.
pub(super) fn users(listens: Listens) -> Vec<User> {
    let user = |file, name: &str, group| User {
        file,
        name: name.to_owned(),
        group,
        token: uuid::Uuid::new_v4().to_string(),
    };
    let mut users = vec![
        user("admin", "admin", "system:masters"),
        user(
            "kube-controller-manager",
            "system:kube-controller-manager",
            "system:masters",
        ),
    ];
    if let Listens::ForNodes(_) = listens {
        users.extend([
            user("kube-scheduler", "system:kube-scheduler", "system:authenticated"),
            user("kube-proxy", "system:kube-proxy", "system:authenticated"),
            user("kubelet", &format!("system:node:{NODE}"), "system:nodes"),
        ]);
    }
    users
}

pub(super) fn write_users(users: &[User], dir: &Path) -> Result<()> {
    let line = |user: &User| format!("{},{},{},{}\n", user.token, user.name, user.name, user.group);
    let lines: String = users.iter().map(line).collect();
    Ok(std::fs::write(dir.join("tokens.csv"), lines)?)
}

/// What all programs of one control plane need to start.
pub(super) struct Starting<'a> {
    pub(super) programs: &'a Path,
    pub(super) dir: &'a Path,
    pub(super) pki: &'a Authority,
    pub(super) listens: Listens,
}

impl Starting<'_> {
    pub(super) fn etcd(&self) -> Result<(Process, Etcd)> {
        let Self { programs, dir, pki, .. } = self;
        let tls = pki.sign("etcd", &[])?;
        let url = format!("https://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let process = Program::new(programs.join("etcd"))
            .flag("data-dir", dir.join("etcd"))
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-peer-urls", &peer)
            .flag("initial-advertise-peer-urls", &peer)
            .flag("initial-cluster", format!("default={peer}"))
            .flag("cert-file", &tls.certificate)
            .flag("key-file", &tls.key)
            .flag("client-cert-auth", "true")
            .flag("trusted-ca-file", pki.file())
            // No data has to survive a crash of the machine.
            .flag("unsafe-no-fsync", "true")
            .env("GOGC", GOGC)
            .spawn("etcd", dir)?;
        Ok((process, Etcd { url, client: tls }))
    }

    pub(super) fn apiserver(&self, etcd: &Etcd, port: u16) -> Result<Process> {
        let Self {
            programs,
            dir,
            pki,
            listens,
        } = self;
        let address = listens.address().to_string();
        let names = ["localhost", "kubernetes.default.svc", KUBERNETES, &address];
        let tls = pki.sign("kube-apiserver", &names)?;
        let accounts = dir.join("service-accounts.key");
        let accounts_public = dir.join("service-accounts.pub");
        let policy = dir.join("audit-policy.yaml");
        write_signing_key(&accounts, &accounts_public)?;
        std::fs::write(&policy, AUDIT_POLICY)?;
        let program = Program::new(programs.join("kube-apiserver"))
            .flag("bind-address", &address)
            .flag("secure-port", port.to_string())
            .flag("tls-cert-file", &tls.certificate)
            .flag("tls-private-key-file", &tls.key)
            .flag("etcd-servers", &etcd.url)
            .flag("etcd-cafile", pki.file())
            .flag("etcd-certfile", &tls.certificate)
            .flag("etcd-keyfile", &tls.key)
            .flag("token-auth-file", dir.join("tokens.csv"))
            .flag("service-account-issuer", ControlPlane::TOKEN_ISSUER)
            .flag("service-account-key-file", &accounts_public)
            .flag("service-account-signing-key-file", &accounts)
            .flag("service-cluster-ip-range", SERVICE_NETWORK)
            .flag("audit-policy-file", &policy)
            .flag("audit-log-path", dir.join("audit.log"))
            .env("GOGC", GOGC);
        let owners = "OwnerReferencesPermissionEnforcement";
        let program = match listens {
            Listens::OnLoopback => program
                .flag("authorization-mode", "RBAC")
                .flag("enable-admission-plugins", owners)
                .flag("endpoint-reconciler-type", "none"),
            Listens::ForNodes(_) => program
                .flag("authorization-mode", "Node,RBAC")
                .flag("enable-admission-plugins", format!("{owners},NodeRestriction"))
                .flag("kubelet-preferred-address-types", "InternalIP")
                .flag("kubelet-certificate-authority", pki.file())
                .flag("kubelet-client-certificate", &tls.certificate)
                .flag("kubelet-client-key", &tls.key),
        };
        program.spawn("kube-apiserver", dir)
    }

    pub(super) fn controller_manager(&self) -> Result<Process> {
        let Self {
            programs,
            dir,
            pki,
            listens,
        } = self;
        let program = Program::new(programs.join("kube-controller-manager"))
            .flag("kubeconfig", dir.join("kube-controller-manager.kubeconfig"))
            .flag("leader-elect", "false")
            .flag("secure-port", "0")
            .flag("kube-api-qps", "200")
            .flag("kube-api-burst", "400");
        let program = match listens {
            Listens::OnLoopback => program.flag(
                "controllers",
                "namespace-controller,garbage-collector-controller,serviceaccount-controller",
            ),
            // All controllers. They notice a silent node sooner than by default (50 s), so that tests can wait for it.
            Listens::ForNodes(_) => program
                .flag("root-ca-file", pki.file())
                .flag("service-account-private-key-file", dir.join("service-accounts.key"))
                .flag("node-monitor-grace-period", "20s"),
        };
        program.spawn("kube-controller-manager", dir)
    }
}
