//! Tokens that a node asks for: each for a service account of a pod that runs on it, bound to that
//! pod, and for an audience that the pod, or a driver of one of its volumes, asks for.

use serde_json::Value;

use super::{Operation, Surroundings, Write, text};
use crate::Status;
use crate::who::question::{Attributes, Place};

pub(super) fn check(
    node: &str,
    write: &Write<'_>,
    around: &Surroundings<'_>,
) -> Result<(), Status> {
    if write.operation != Operation::Create || write.subresource != "token" {
        return Ok(());
    }
    let bound = &write.object["spec"]["boundObjectRef"];
    let (name, uid) = (text(&bound["name"]), text(&bound["uid"]));
    if bound["apiVersion"] != "v1" || bound["kind"] != "Pod" || name.is_empty() {
        return write.refuse("node requested token not bound to a pod");
    }
    if uid.is_empty() {
        return write.refuse("node requested token with a pod binding without a uid");
    }
    let pod = around.found("pods", write.namespace, name)?;
    if pod["metadata"]["uid"] != uid {
        return write.refuse(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        ));
    }
    if pod["spec"]["nodeName"] != node {
        return write.refuse("node requested token bound to a pod scheduled on a different node");
    }
    audience(write, &pod, around)
}

fn audience(write: &Write<'_>, pod: &Value, around: &Surroundings<'_>) -> Result<(), Status> {
    let audiences = write.object["spec"]["audiences"].as_array();
    let wanted = match audiences.map_or(&[][..], Vec::as_slice) {
        [] => "",
        [one] => text(one),
        _ => return write.refuse("node may only request 0 or 1 audiences"),
    };
    match asks_for(pod, write.namespace, wanted, around) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(why) => return write.refuse(format!("error validating audience {wanted:?}: {why}")),
    }
    let place = Place::new("", wanted, write.namespace).named(write.name);
    let verb = "request-serviceaccounts-token-audience";
    let question = Attributes::resource(write.user, verb, place);
    match (around.decide)(&question).is_allowed() {
        true => Ok(()),
        false => write.refuse(format!(
            "audience {wanted:?} not found in pod spec volume, {} is not authorized to request \
             tokens for this audience",
            write.user.name
        )),
    }
}

/// Whether the pod, or a driver of one of its volumes, asks for tokens of this audience. An error
/// where that cannot be told because something is missing, and nothing else asks for it.
fn asks_for(
    pod: &Value,
    namespace: &str,
    wanted: &str,
    around: &Surroundings<'_>,
) -> Result<bool, String> {
    let mut problems = Vec::new();
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        let sources = volume["projected"]["sources"].as_array();
        let projected = sources.into_iter().flatten().any(|source| {
            let token = &source["serviceAccountToken"];
            token.is_object() && text(&token["audience"]) == wanted
        });
        if projected {
            return Ok(true);
        }
        match driver_asks_for(pod, volume, namespace, wanted, around) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => problems.push(problem),
        }
    }
    match crate::who::rbac::listed(&problems) {
        Some(problem) => Err(problem),
        None => Ok(false),
    }
}

fn driver_asks_for(
    pod: &Value,
    volume: &Value,
    namespace: &str,
    wanted: &str,
    around: &Surroundings<'_>,
) -> Result<bool, String> {
    let claim = if volume["ephemeral"]["volumeClaimTemplate"].is_object() {
        format!(
            "{}-{}",
            text(&pod["metadata"]["name"]),
            text(&volume["name"])
        )
    } else {
        text(&volume["persistentVolumeClaim"]["claimName"]).to_owned()
    };
    let driver = match claim.as_str() {
        "" => text(&volume["csi"]["driver"]).to_owned(),
        claim => claim_driver(namespace, claim, around)?,
    };
    if driver.is_empty() {
        return Ok(false);
    }
    let known = around
        .find("storage.k8s.io", "csidrivers", "", &driver)
        .ok_or_else(|| format!("csidriver.storage.k8s.io {driver:?} not found"))?;
    let requests = known["spec"]["tokenRequests"].as_array();
    Ok(requests
        .into_iter()
        .flatten()
        .any(|request| text(&request["audience"]) == wanted))
}

/// The driver behind a claim; empty where its volume has none.
fn claim_driver(namespace: &str, name: &str, around: &Surroundings<'_>) -> Result<String, String> {
    let claim = around
        .find("", "persistentvolumeclaims", namespace, name)
        .ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let volume = text(&claim["spec"]["volumeName"]);
    let volume = around
        .find("", "persistentvolumes", "", volume)
        .ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
    Ok(text(&volume["spec"]["csi"]["driver"]).to_owned())
}
