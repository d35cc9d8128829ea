//! Who may: tokens, roles and bindings, impersonation, and what is refused to the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::{Cluster, is_real};

/// A kubeconfig for the same cluster that has this token instead of a certificate.
pub(crate) fn with_token(cluster: &Cluster, token: &str) -> PathBuf {
    let admin = fs::read_to_string(cluster.kubeconfig()).expect("the kubeconfig");
    let user = admin.find("users:").expect("its users");
    let contexts = admin.find("contexts:").expect("its contexts");
    let name = admin[user..].lines().nth(1).expect("its name");
    let text = format!(
        "{}users:\n{name}\n  user:\n    token: {token}\n{}",
        &admin[..user],
        &admin[contexts..]
    );
    cluster.file("token-kubeconfig", &text).into()
}

/// Runs kubectl until it is refused, for at most half a minute: a real server remembers for ten
/// seconds that a token was good. Ours does not.
fn refused_in_the_end(cluster: &Cluster, kubeconfig: &Path, line: &str) -> String {
    for _ in 0..100 {
        let said = cluster.kubectl_as(kubeconfig, line).run();
        if said.code != 0 {
            return said.err;
        }
        assert!(is_real(), "ours refuses at once:\n{}", said.out);
        std::thread::sleep(Duration::from_millis(300));
    }
    panic!("kubectl {line} was never refused");
}

/// A service account that may read pods in the default namespace, and its kubeconfig.
fn with_robot() -> (Cluster, PathBuf) {
    let cluster = Cluster::start();
    cluster.ok("create serviceaccount robot");
    cluster.ok("create role reader --verb=get,list,watch --resource=pods");
    cluster.ok("create rolebinding robot-reads --role=reader --serviceaccount=default:robot");
    let token = cluster.ok("create token robot");
    let kubeconfig = with_token(&cluster, &token);
    (cluster, kubeconfig)
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn the_administrator_may_everything_and_knows_who_they_are() {
    let cluster = Cluster::start();
    assert_eq!(cluster.ok("auth can-i '*' '*' -A"), "yes");
    let said = cluster.ok("auth whoami");
    assert!(
        said.contains("kubernetes-admin") && said.contains("system:masters"),
        "{said}"
    );
    let list = cluster.ok("auth can-i --list");
    assert!(list.contains("*.*") && list.contains("[*]"), "{list}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_token_opens_what_its_roles_allow_and_nothing_else() {
    let (cluster, robot) = with_robot();
    cluster.ok("run web --image=i");
    let said = cluster.kubectl_as(&robot, "get pods -o name").ok();
    assert_eq!(said, "pod/web");
    let whoami = cluster.kubectl_as(&robot, "auth whoami").ok();
    assert!(
        whoami.contains("system:serviceaccount:default:robot"),
        "{whoami}"
    );
    let user = "User \"system:serviceaccount:default:robot\" cannot";
    for (line, words) in [
        (
            "delete pod web",
            "delete resource \"pods\" in API group \"\" in the namespace",
        ),
        (
            "get secrets",
            "list resource \"secrets\" in API group \"\" in the namespace \"default\"",
        ),
        (
            "get pods -A",
            "list resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "get nodes",
            "list resource \"nodes\" in API group \"\" at the cluster scope",
        ),
        (
            "create namespace x",
            "create resource \"namespaces\" in API group \"\" at the cluster",
        ),
        (
            "label pod web a=b",
            "patch resource \"pods\" in API group \"\" in the namespace",
        ),
    ] {
        let refused = cluster.kubectl_as(&robot, line).refused();
        assert!(refused.contains("(Forbidden)"), "{line}: {refused}");
        assert!(
            refused.contains(&format!("{user} {words}")),
            "{line}: {refused}"
        );
    }
    assert_eq!(
        cluster.kubectl_as(&robot, "auth can-i list pods").ok(),
        "yes"
    );
    let said = cluster.kubectl_as(&robot, "auth can-i delete pods").run();
    assert_eq!((said.code, said.out.trim_end()), (1, "no"));
    let list = cluster.kubectl_as(&robot, "auth can-i --list").ok();
    assert!(
        list.contains("pods") && list.contains("[get list watch]"),
        "{list}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_role_takes_effect_when_it_is_given_and_ends_when_it_is_taken() {
    let (cluster, robot) = with_robot();
    assert_eq!(
        cluster
            .kubectl_as(&robot, "auth can-i create configmaps")
            .run()
            .code,
        1
    );
    cluster.ok("create clusterrole writer --verb=create,get --resource=configmaps");
    cluster.ok("create clusterrolebinding w --clusterrole=writer --serviceaccount=default:robot");
    cluster.kubectl_as(&robot, "create configmap mine").ok();
    cluster.ok("create namespace other");
    cluster
        .kubectl_as(&robot, "create configmap mine -n other")
        .ok();
    cluster.ok("delete clusterrolebinding w");
    let refused = cluster.kubectl_as(&robot, "get configmap mine").refused();
    assert!(refused.contains("(Forbidden)"), "{refused}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_token_dies_with_its_account_and_a_made_up_one_never_lived() {
    let (cluster, robot) = with_robot();
    cluster.kubectl_as(&robot, "get pods").ok();
    cluster.ok("delete serviceaccount robot");
    let refused = refused_in_the_end(&cluster, &robot, "get pods");
    assert!(
        refused.contains("You must be logged in to the server"),
        "{refused}"
    );
    let stranger = with_token(&cluster, "abc.def.ghi");
    let refused = cluster.kubectl_as(&stranger, "get pods").refused();
    assert!(
        refused.contains("You must be logged in to the server"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn tokens_have_the_audience_and_the_life_that_is_asked_for() {
    let cluster = Cluster::start();
    cluster.ok("create serviceaccount robot");
    let token = cluster.ok("create token robot --audience=elsewhere.example --duration=1h");
    assert_eq!(token.split('.').count(), 3, "{token}");
    let elsewhere = with_token(&cluster, &token);
    let refused = cluster.kubectl_as(&elsewhere, "get pods").refused();
    assert!(
        refused.contains("You must be logged in"),
        "made for another audience: {refused}"
    );
    let refused = cluster.refused("create token robot --duration=1s");
    assert!(refused.contains("less than 10 minutes"), "{refused}");
    let refused = cluster.refused("create token nobody");
    assert!(
        refused.contains("serviceaccounts \"nobody\" not found"),
        "{refused}"
    );
    cluster.create(
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, \
          spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}",
    );
    let bound = "create token robot --bound-object-kind=Pod --bound-object-name=web";
    let kubeconfig = with_token(&cluster, &cluster.ok(bound));
    cluster.kubectl_as(&kubeconfig, "auth whoami").ok();
    cluster.ok("delete pod web --now");
    let refused = refused_in_the_end(&cluster, &kubeconfig, "auth whoami");
    assert!(
        refused.contains("You must be logged in"),
        "its pod is gone: {refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn the_administrator_can_be_someone_else_and_a_robot_cannot() {
    let (cluster, robot) = with_robot();
    let robot_name = "system:serviceaccount:default:robot";
    assert_eq!(
        cluster.ok(&format!("auth can-i list pods --as={robot_name}")),
        "yes"
    );
    let said = cluster.kubectl(&format!(
        "auth can-i list pods -n kube-system --as={robot_name}"
    ));
    assert_eq!(said.run().code, 1);
    let refused = cluster.refused("get pods --as=ada --as-group=readers");
    assert!(
        refused.contains("User \"ada\" cannot list resource \"pods\""),
        "{refused}"
    );
    cluster.ok("create rolebinding readers --role=reader --group=readers");
    cluster.ok("get pods --as=ada --as-group=readers");
    let whoami = cluster.ok("auth whoami --as=ada --as-group=readers");
    assert!(
        whoami.contains("ada") && whoami.contains("readers"),
        "{whoami}"
    );
    let refused = cluster
        .kubectl_as(&robot, "get pods --as=kubernetes-admin")
        .refused();
    assert!(
        refused.contains("(Forbidden)") && refused.contains("impersonate"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn nobody_gives_away_more_than_they_have() {
    let (cluster, robot) = with_robot();
    cluster.ok("create role makes-roles --verb=create --resource=roles,rolebindings");
    cluster.ok("create rolebinding m --role=makes-roles --serviceaccount=default:robot");
    cluster
        .kubectl_as(&robot, "create role same --verb=get --resource=pods")
        .ok();
    let refused = cluster.kubectl_as(&robot, "create role more --verb=get --resource=secrets");
    let refused = refused.refused();
    assert!(
        refused.contains("is attempting to grant RBAC permissions not currently held"),
        "{refused}"
    );
    let binding =
        "create rolebinding up --clusterrole=cluster-admin --serviceaccount=default:robot";
    let refused = cluster.kubectl_as(&robot, binding).refused();
    assert!(
        refused.contains("{APIGroups:[\"*\"], Resources:[\"*\"]"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn auth_reconcile_makes_roles_and_completes_them() {
    let cluster = Cluster::start();
    let role = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: default}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
";
    let said = cluster.kubectl("auth reconcile -f -").stdin(role).ok();
    assert!(
        said.contains("role.rbac.authorization.k8s.io/r reconciled"),
        "{said}"
    );
    cluster
        .kubectl("auth reconcile -f -")
        .stdin(&role.replace("[get]", "[list]"))
        .ok();
    let verbs = cluster.value("role r", ".rules[*].verbs[*]");
    assert!(verbs.contains("get") && verbs.contains("list"), "{verbs}");
}
