//! The cluster roles that every cluster begins with, as a table: the facts of Kubernetes 1.36 with
//! its default features. Lists are words in a string; the word `core` is the core group.

use super::{Role, RuleText, objects, paths};

const READ: &str = "get list watch";
const WRITE: &str = "create update patch delete deletecollection";
const READ_WRITE: &str = "get list watch create update patch delete deletecollection";
const READ_UPDATE: &str = "get list watch update patch";
const EVENTS: RuleText = objects("create update patch", "core events.k8s.io", "events");

/// What a node may do that does not depend on which node it is.
pub(super) const NODE: &[RuleText] = &[
    objects("create", "authentication.k8s.io", "tokenreviews"),
    objects(
        "create",
        "authorization.k8s.io",
        "localsubjectaccessreviews subjectaccessreviews",
    ),
    objects(READ, "core", "services"),
    objects("create get list watch", "core", "nodes"),
    objects("patch update", "core", "nodes/status"),
    objects("patch update", "core", "nodes"),
    EVENTS,
    objects(READ, "core", "pods"),
    objects("create delete", "core", "pods"),
    objects("patch update", "core", "pods/status"),
    objects("create", "core", "pods/eviction"),
    objects(READ, "core", "configmaps secrets"),
    objects("get", "core", "persistentvolumeclaims persistentvolumes"),
    objects("get", "core", "endpoints"),
    objects(
        "create get list watch",
        "certificates.k8s.io",
        "certificatesigningrequests",
    ),
    objects(
        "create delete get patch update",
        "coordination.k8s.io",
        "leases",
    ),
    objects("get", "storage.k8s.io", "volumeattachments"),
    objects("create", "core", "serviceaccounts/token"),
    objects("get patch update", "core", "persistentvolumeclaims/status"),
    objects(READ, "storage.k8s.io", "csidrivers"),
    objects(
        "create delete get patch update",
        "storage.k8s.io",
        "csinodes",
    ),
    objects(READ, "node.k8s.io", "runtimeclasses"),
    objects("get", "resource.k8s.io", "resourceclaims"),
    objects("deletecollection", "resource.k8s.io", "resourceslices"),
    objects("get", "core", "serviceaccounts"),
];

pub(super) const CLUSTER_ROLES: &[Role] = &[
    Role::collecting("admin", "admin"),
    Role::new("cluster-admin", &[objects("*", "*", "*"), paths("*", "*")]),
    Role::collecting("edit", "edit").collected_by("admin"),
    Role::new(
        "system:aggregate-to-admin",
        &[
            objects(
                "create",
                "authorization.k8s.io",
                "localsubjectaccessreviews",
            ),
            objects(
                READ_WRITE,
                "rbac.authorization.k8s.io",
                "rolebindings roles",
            ),
        ],
    )
    .collected_by("admin"),
    Role::new(
        "system:aggregate-to-edit",
        &[
            objects(
                READ,
                "core",
                "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
            ),
            objects("impersonate", "core", "serviceaccounts"),
            objects(
                WRITE,
                "core",
                "pods pods/attach pods/exec pods/portforward pods/proxy",
            ),
            objects("create", "core", "pods/eviction"),
            objects(
                WRITE,
                "core",
                "configmaps persistentvolumeclaims replicationcontrollers \
                 replicationcontrollers/scale secrets serviceaccounts services \
                 services/proxy",
            ),
            objects("create", "core", "serviceaccounts/token"),
            objects(WRITE, "core events.k8s.io", "events"),
            objects(
                WRITE,
                "apps",
                "daemonsets deployments deployments/rollback deployments/scale \
                 replicasets replicasets/scale statefulsets statefulsets/scale",
            ),
            objects(WRITE, "autoscaling", "horizontalpodautoscalers"),
            objects(WRITE, "batch", "cronjobs jobs"),
            objects(
                WRITE,
                "extensions",
                "daemonsets deployments deployments/rollback deployments/scale ingresses \
                 networkpolicies replicasets replicasets/scale \
                 replicationcontrollers/scale",
            ),
            objects(WRITE, "policy", "poddisruptionbudgets"),
            objects(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
            objects(READ_WRITE, "coordination.k8s.io", "leases"),
            objects(
                WRITE,
                "resource.k8s.io",
                "resourceclaims resourceclaimtemplates",
            ),
        ],
    )
    .collected_by("edit"),
    Role::new(
        "system:aggregate-to-view",
        &[
            objects(
                READ,
                "core",
                "configmaps endpoints persistentvolumeclaims \
                 persistentvolumeclaims/status pods replicationcontrollers \
                 replicationcontrollers/scale serviceaccounts services services/status",
            ),
            objects(
                READ,
                "core",
                "bindings limitranges namespaces/status pods/log pods/status \
                 replicationcontrollers/status resourcequotas resourcequotas/status",
            ),
            objects(READ, "core", "namespaces"),
            objects(READ, "core events.k8s.io", "events"),
            objects(READ, "discovery.k8s.io", "endpointslices"),
            objects(
                READ,
                "apps",
                "controllerrevisions daemonsets daemonsets/status deployments \
                 deployments/scale deployments/status replicasets replicasets/scale \
                 replicasets/status statefulsets statefulsets/scale statefulsets/status",
            ),
            objects(
                READ,
                "autoscaling",
                "horizontalpodautoscalers horizontalpodautoscalers/status",
            ),
            objects(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
            objects(
                READ,
                "extensions",
                "daemonsets daemonsets/status deployments deployments/scale \
                 deployments/status ingresses ingresses/status networkpolicies \
                 replicasets replicasets/scale replicasets/status \
                 replicationcontrollers/scale",
            ),
            objects(
                READ,
                "policy",
                "poddisruptionbudgets poddisruptionbudgets/status",
            ),
            objects(
                READ,
                "networking.k8s.io",
                "ingresses ingresses/status networkpolicies",
            ),
            objects(
                READ,
                "resource.k8s.io",
                "resourceclaims resourceclaims/status resourceclaimtemplates",
            ),
        ],
    )
    .collected_by("view"),
    Role::new(
        "system:auth-delegator",
        &[
            objects("create", "authentication.k8s.io", "tokenreviews"),
            objects("create", "authorization.k8s.io", "subjectaccessreviews"),
        ],
    ),
    Role::new(
        "system:basic-user",
        &[
            objects(
                "create",
                "authorization.k8s.io",
                "selfsubjectaccessreviews selfsubjectrulesreviews",
            ),
            objects("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    ),
    Role::new(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[objects(
            "create",
            "certificates.k8s.io",
            "certificatesigningrequests/nodeclient",
        )],
    ),
    Role::new(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[objects(
            "create",
            "certificates.k8s.io",
            "certificatesigningrequests/selfnodeclient",
        )],
    ),
    Role::new(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[objects("approve", "certificates.k8s.io", "signers")
            .only("kubernetes.io/kube-apiserver-client")],
    ),
    Role::new(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[objects("approve", "certificates.k8s.io", "signers")
            .only("kubernetes.io/kube-apiserver-client-kubelet")],
    ),
    Role::new(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[objects("approve", "certificates.k8s.io", "signers")
            .only("kubernetes.io/kubelet-serving")],
    ),
    Role::new(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[objects("approve", "certificates.k8s.io", "signers")
            .only("kubernetes.io/legacy-unknown")],
    ),
    Role::new(
        "system:discovery",
        &[paths(
            "get",
            "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz \
                 /version /version/",
        )],
    ),
    Role::new(
        "system:heapster",
        &[
            objects(READ, "core", "events namespaces nodes pods"),
            objects(READ, "extensions", "deployments"),
        ],
    ),
    Role::new(
        "system:kube-aggregator",
        &[objects(READ, "core", "endpoints services")],
    ),
    Role::new(
        "system:kube-controller-manager",
        &[
            EVENTS,
            objects("create", "coordination.k8s.io", "leases"),
            objects("get update", "coordination.k8s.io", "leases").only("kube-controller-manager"),
            objects("create", "core", "secrets serviceaccounts"),
            objects("delete", "core", "secrets"),
            objects(
                "get",
                "core",
                "configmaps namespaces secrets serviceaccounts",
            ),
            objects("update", "core", "secrets serviceaccounts"),
            objects("create", "authentication.k8s.io", "tokenreviews"),
            objects("create", "authorization.k8s.io", "subjectaccessreviews"),
            objects("list watch", "*", "*"),
            objects("create", "core", "serviceaccounts/token"),
        ],
    ),
    Role::new(
        "system:kube-dns",
        &[objects("list watch", "core", "endpoints services")],
    ),
    Role::new(
        "system:kube-scheduler",
        &[
            EVENTS,
            objects("create", "coordination.k8s.io", "leases"),
            objects("get list update watch", "coordination.k8s.io", "leases")
                .only("kube-scheduler"),
            objects(READ_WRITE, "coordination.k8s.io", "leasecandidates"),
            objects(READ, "core", "nodes"),
            objects("delete get list watch", "core", "pods"),
            objects("create", "core", "bindings pods/binding"),
            objects("patch update", "core", "pods/status"),
            objects(READ, "core", "replicationcontrollers services"),
            objects(READ, "apps extensions", "replicasets"),
            objects(READ, "apps", "statefulsets"),
            objects(READ, "policy", "poddisruptionbudgets"),
            objects(READ, "core", "persistentvolumeclaims persistentvolumes"),
            objects("create", "authentication.k8s.io", "tokenreviews"),
            objects("create", "authorization.k8s.io", "subjectaccessreviews"),
            objects(READ, "storage.k8s.io", "csinodes"),
            objects(READ, "storage.k8s.io", "volumeattachments"),
            objects(READ, "core", "namespaces"),
            objects(READ, "storage.k8s.io", "csidrivers"),
            objects(READ, "storage.k8s.io", "csistoragecapacities"),
            objects(READ, "resource.k8s.io", "deviceclasses"),
            objects(READ_UPDATE, "resource.k8s.io", "resourceclaims"),
            objects(READ_UPDATE, "resource.k8s.io", "resourceclaims/status"),
            objects("update", "core", "pods/finalizers"),
            objects(READ, "resource.k8s.io", "resourceslices"),
            objects("create delete", "resource.k8s.io", "resourceclaims"),
            objects("patch update", "resource.k8s.io", "resourceclaims/binding"),
        ],
    ),
    Role::new(
        "system:kubelet-api-admin",
        &[
            objects(READ, "core", "nodes"),
            objects("proxy", "core", "nodes"),
            objects(
                "*",
                "core",
                "nodes/log nodes/metrics nodes/proxy nodes/stats",
            ),
            objects("*", "core", "nodes/configz nodes/healthz nodes/pods"),
        ],
    ),
    Role::new(
        "system:monitoring",
        &[
            paths(
                "get",
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis \
                 /readyz /readyz/* /statusz",
            ),
            objects("get", "core", "nodes/metrics"),
        ],
    ),
    Role::new("system:node", NODE),
    Role::new(
        "system:node-bootstrapper",
        &[objects(
            "create get list watch",
            "certificates.k8s.io",
            "certificatesigningrequests",
        )],
    ),
    Role::new(
        "system:node-problem-detector",
        &[
            objects("get", "core", "nodes"),
            objects("patch", "core", "nodes/status"),
            EVENTS,
        ],
    ),
    Role::new(
        "system:node-proxier",
        &[
            objects("list watch", "core", "endpoints services"),
            objects(READ, "core", "nodes"),
            EVENTS,
            objects("list watch", "networking.k8s.io", "servicecidrs"),
            objects("list watch", "discovery.k8s.io", "endpointslices"),
        ],
    ),
    Role::new(
        "system:persistent-volume-provisioner",
        &[
            objects("create delete get list watch", "core", "persistentvolumes"),
            objects("get list update watch", "core", "persistentvolumeclaims"),
            objects(READ, "storage.k8s.io", "storageclasses"),
            objects("watch", "core", "events"),
            EVENTS,
        ],
    ),
    Role::new(
        "system:public-info-viewer",
        &[paths("get", "/healthz /livez /readyz /version /version/")],
    ),
    Role::new(
        "system:service-account-issuer-discovery",
        &[paths(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ \
                 /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
    Role::new(
        "system:volume-scheduler",
        &[
            objects(READ_UPDATE, "core", "persistentvolumes"),
            objects(READ, "storage.k8s.io", "storageclasses"),
            objects(READ_UPDATE, "core", "persistentvolumeclaims"),
        ],
    ),
    Role::collecting("view", "view").collected_by("edit"),
];
