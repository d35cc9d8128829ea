//! Who may: bindings of roles, certificates and who asked for them, leases and who holds them.

use super::super::age::human_duration;
use super::super::labels::format_labels;
use super::super::subject::{Part, Subject, word};
use super::{AGE, NAME, Printer, SPEC, SPEC_AND_STATUS, or_none, text, wide};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "RoleBinding" | "ClusterRoleBinding" => &BINDING,
        "CertificateSigningRequest" => &SIGNING_REQUEST,
        "ClusterTrustBundle" => &TRUST_BUNDLE,
        "PodCertificateRequest" => &POD_CERTIFICATE,
        "Lease" => &LEASE,
        "LeaseCandidate" => &LEASE_CANDIDATE,
        // Role and ClusterRole have no columns of their own.
        _ => return None,
    })
}

static BINDING: Printer = Printer {
    columns: &[
        NAME,
        text("Role", "The role that is given."),
        AGE,
        wide(text("Users", "The users who have it.")),
        wide(text("Groups", "The groups who have it.")),
        wide(text(
            "ServiceAccounts",
            "The service accounts that have it.",
        )),
    ],
    keep: &[Part::Whole("roleRef"), Part::Whole("subjects")],
    cells: |subject| {
        let role = subject.at("/roleRef");
        vec![
            subject.name().into(),
            format!("{}/{}", word(role, "kind"), word(role, "name")).into(),
            subject.age().into(),
            bound(subject, "User").into(),
            bound(subject, "Group").into(),
            bound(subject, "ServiceAccount").into(),
        ]
    },
    outcome: None,
};

static SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        text("SignerName", "Who is to sign."),
        text("Requestor", "Who asked."),
        text("RequestedDuration", "How long the certificate is to last."),
        text("Condition", "Whether it is approved and issued."),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let lasting = subject.at("/spec/expirationSeconds").as_i64();
        vec![
            subject.name().into(),
            subject.age().into(),
            or_none(subject.text("/spec/signerName")).into(),
            subject.text("/spec/username").into(),
            lasting
                .map_or_else(|| "<none>".to_owned(), human_duration)
                .into(),
            signing_condition(subject).into(),
        ]
    },
    outcome: None,
};

static TRUST_BUNDLE: Printer = Printer {
    columns: &[
        NAME,
        text("SignerName", "Whose certificates the bundle verifies."),
    ],
    keep: SPEC,
    cells: |subject| {
        vec![
            subject.name().into(),
            or_none(subject.text("/spec/signerName")).into(),
        ]
    },
    outcome: None,
};

static POD_CERTIFICATE: Printer = Printer {
    columns: &[
        NAME,
        text("PodName", "The pod that the certificate is for."),
        text("ServiceAccountName", "The pod's service account."),
        text("NodeName", "The node that the pod runs on."),
        text("SignerName", "Who is to sign."),
        text("State", "Whether it is issued."),
        text(
            "UnverifiedUserAnnotations",
            "What the pod adds to the request, on its own word.",
        ),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let known = ["Issued", "Denied", "Failed"];
        let conditions = subject.list("/status/conditions").iter();
        let state = conditions
            .map(|one| word(one, "type"))
            .rfind(|kind| known.contains(kind));
        vec![
            subject.name().into(),
            subject.text("/spec/podName").into(),
            subject.text("/spec/serviceAccountName").into(),
            subject.text("/spec/nodeName").into(),
            subject.text("/spec/signerName").into(),
            state.unwrap_or("Pending").into(),
            format_labels(subject.at("/spec/unverifiedUserAnnotations")).into(),
        ]
    },
    outcome: None,
};

static LEASE: Printer = Printer {
    columns: &[NAME, text("Holder", "Who holds it."), AGE],
    keep: SPEC,
    cells: |subject| {
        let holder = subject.text("/spec/holderIdentity");
        vec![subject.name().into(), holder.into(), subject.age().into()]
    },
    outcome: None,
};

static LEASE_CANDIDATE: Printer = Printer {
    columns: &[
        NAME,
        text("LeaseName", "The lease that it stands for."),
        text("BinaryVersion", "The version of its program."),
        text(
            "EmulationVersion",
            "The version that its program behaves as.",
        ),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/spec/leaseName").into(),
            subject.text("/spec/binaryVersion").into(),
            subject.text("/spec/emulationVersion").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

/// The subjects of one kind that a binding gives its role to.
fn bound(binding: &Subject<'_>, kind: &str) -> String {
    let of_kind = binding
        .list("/subjects")
        .iter()
        .filter(|one| word(one, "kind") == kind);
    let named = of_kind.map(|one| match kind {
        "ServiceAccount" => format!("{}/{}", word(one, "namespace"), word(one, "name")),
        _ => word(one, "name").to_owned(),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn signing_condition(request: &Subject<'_>) -> String {
    let has = |kind: &str| request.condition(kind).is_some();
    let mut condition = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied".to_owned(),
        (false, true) => "Approved".to_owned(),
        (false, false) => "Pending".to_owned(),
    };
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if request
        .at("/status/certificate")
        .as_str()
        .is_some_and(|bytes| !bytes.is_empty())
    {
        condition.push_str(",Issued");
    }
    condition
}
