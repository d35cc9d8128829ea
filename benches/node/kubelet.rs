//! What a kubelet writes, and what it reads before: as a real one does it, on its one connection.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::message::{Form, Message};
use crate::shop::{event, first_status, lease, node_status, pod_status, shop, token_request};
use crate::side::{Pod, Side};

impl Side {
    /// Makes its lease.
    pub(crate) async fn make_lease(&mut self) {
        let made = self.post(LEASES, &lease(self.node)).await;
        self.lease = Some(made);
    }

    /// Renews its lease: what it was told last goes back with another time in it.
    pub(crate) async fn renew(&mut self, turn: usize) {
        let known = self.lease.as_ref().expect("a lease");
        let content = known.renewed(turn as u64 + 1);
        let path = format!("{LEASES}/{}", self.node);
        let renewed = self.kubelet.call("PUT", &path, content).await;
        // A node answers for itself and mints no versions; a cluster has written it.
        let written = renewed.form == Form::Json || renewed.version() > known.version();
        assert!(written, "a lease that is not renewed");
        self.lease = Some(renewed);
    }

    /// Says that the node is there, and waits until it is told of that.
    pub(crate) async fn tell_node(&self, turn: usize) {
        let path = format!("/api/v1/nodes/{}/status", self.node);
        let version = self.patch(&path, &node_status(turn)).await.version();
        self.has("node", version).await;
    }

    /// Tells the whole status of a pod for the first time.
    pub(crate) async fn tell_pod_first(&self, number: usize) {
        let pod = &self.pods[number];
        self.tell(pod, &first_status(&pod.uid, number)).await;
    }

    /// Tells a change of a pod.
    pub(crate) async fn tell_pod(&self, number: usize, turn: usize) {
        let pod = &self.pods[number % self.pods.len()];
        self.tell(pod, &pod_status(&pod.uid, turn)).await;
    }

    /// Tells that a pod's containers have ended, and makes an event of it.
    pub(crate) async fn tell_end(&self, pod: &Pod, turn: usize) {
        self.tell(pod, &pod_status(&pod.uid, 2 * turn + 1)).await;
        let made = event(self.node, &pod.name, 2_000_000 + turn);
        self.post(&shop("events"), &made).await;
    }

    /// A kubelet reads a pod before it writes its status.
    async fn tell(&self, pod: &Pod, status: &Value) {
        let path = shop(&format!("pods/{}", pod.name));
        self.kubelet.get(&path).await;
        let path = format!("{path}/status");
        let version = self.patch(&path, status).await.version();
        self.has("pods", version).await;
    }

    /// Makes an event.
    pub(crate) async fn tell_event(&self, number: usize, turn: usize) {
        let pod = &self.pods[number % self.pods.len()];
        let made = event(self.node, &pod.name, turn);
        self.post(&shop("events"), &made).await;
    }

    /// Asks for a token for a pod.
    pub(crate) async fn ask_token(&self, number: usize) {
        let pod = &self.pods[number % self.pods.len()];
        let path = shop("serviceaccounts/default/token");
        self.post(&path, &token_request(&pod.name, &pod.uid)).await;
    }

    /// Ends a pod that was asked to end.
    pub(crate) async fn end(&self, pod: &Pod) {
        let before = self.changes("pods");
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod.uid}
        });
        let path = shop(&format!("pods/{}", pod.name));
        let content = ("application/json", options.to_string().into());
        self.kubelet.call("DELETE", &path, content).await;
        self.changed("pods", before).await;
    }

    async fn patch(&self, path: &str, patch: &Value) -> Message {
        let body: Bytes = patch.to_string().into();
        let content = ("application/strategic-merge-patch+json", body);
        self.kubelet.call("PATCH", path, content).await
    }

    async fn post(&self, path: &str, object: &Value) -> Message {
        let content = ("application/json", object.to_string().into());
        self.kubelet.call("POST", path, content).await
    }
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
