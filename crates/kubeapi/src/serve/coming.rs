//! What is not here yet and is on its way: it is waited for, for a moment. A watch that were passed
//! on instead would end with the link, and be paid for twice.

use std::time::Duration;

use http::Method;
use object::ObjectName;
use store::{Range, Want};

use super::Api;
use super::beyond::{Beyond, may};
use super::objects::{Subject, instead};
use super::route::{Asked, is_watch};
use crate::Status;
use crate::read::options::{Freshness, ListOptions, Start, WatchOptions, get_freshness};
use crate::read::{get, question};
use crate::request::{Query, ResourcePath};
use crate::who::user::as_service_account;

/// How long is waited. What did not come by then is asked of the cluster.
const COMES_WITHIN: Duration = Duration::from_secs(2);

/// How long is waited for a version that was seen elsewhere.
const REACHED_WITHIN: Duration = Duration::from_secs(1);

/// Waits for what a request is about, if it is not here and comes. Says whether it is to be looked
/// for here then: who stands at a version from before it came goes on where that is known.
pub(super) async fn has_come(
    api: &Api,
    beyond: &dyn Beyond,
    asked: &Asked,
    path: &ResourcePath,
) -> Result<bool, Status> {
    if asked.method != Method::GET || !path.name.is_empty() || !beyond.is_open() {
        return Ok(true);
    }
    let Some(kind) = api.catalog.find(&path.group, &path.version, &path.resource) else {
        return Ok(true);
    };
    let Ok(want) = question::want(&kind, path, &asked.query) else {
        return Ok(true);
    };
    let watches = is_watch(path, &asked.query);
    if api.reader.covers(&want) || !matches!(may(api, asked, path), Ok(true)) {
        return Ok(true);
    }
    let comes = is_named(beyond, asked, &want) || (watches && is_brought(beyond, asked, &want));
    if !comes {
        return Ok(true);
    }
    // Who waits takes the place of a request.
    let _pass = api.gate.request(&asked.user.name)?;
    let covered = api.reader.covered(&want);
    drop(tokio::time::timeout(COMES_WITHIN, covered).await);
    Ok(!watches || !is_from_before(api, &want, &asked.query))
}

/// Whether a kubelet asks for something that pods name: it is on its way when the pod is here.
fn is_named(beyond: &dyn Beyond, asked: &Asked, want: &Want) -> bool {
    let (group, plural) = (want.resource.group(), want.resource.plural());
    let kind = matches!((group, plural), ("", "secrets" | "configmaps"));
    let kubelet = asked.user.node().is_some() && beyond.lends_itself_to(&asked.user);
    kind && kubelet && matches!(narrowed(want), Range::Name(_))
}

/// Whether what somebody watches comes here. It comes for those alone who watch on their own
/// account: a person who looks at something would not wait for it.
fn is_brought(beyond: &dyn Beyond, asked: &Asked, want: &Want) -> bool {
    let of_account = as_service_account(&asked.user.name).is_some();
    of_account && beyond.brings(&want.resource, &narrowed(want))
}

/// Whether a watch goes on from a version that is older than what is held.
fn is_from_before(api: &Api, want: &Want, query: &Query) -> bool {
    let Ok(WatchOptions { start, .. }) = WatchOptions::parse(query) else {
        return false;
    };
    let (Start::After(version), Ok(floor)) = (start, api.reader.floor(want)) else {
        return false;
    };
    version < floor
}

/// Whether a list goes on from a page of a moment that is not known here: the cluster gave it, or
/// it is too old.
pub(super) fn is_page_of_elsewhere(api: &Api, want: &Want, query: &Query) -> bool {
    let token = ListOptions::parse(query).ok();
    let version = token.and_then(|options| options.token?.version);
    let (Some(version), Ok(floor)) = (version, api.reader.floor(want)) else {
        return false;
    };
    let reached = api.reader.version(&want.resource);
    version < floor
        || reached.is_none_or(|reached| version > reached)
        || !api.reader.may_have_shown(&want.resource, &version)
}

/// Waits until there is something as new as a list or an object is to be. Says whether there is: a
/// client that was answered by the cluster before may know more than is here.
pub(super) async fn is_new_enough(
    api: &Api,
    asked: &Asked,
    (subject, path): (&Subject, &ResourcePath),
) -> Result<bool, Status> {
    if is_watch(path, &asked.query) || instead(api, subject, path, &asked.query).is_some() {
        return Ok(true);
    }
    let freshness = match path.name.is_empty() {
        true => ListOptions::parse(&asked.query).map(|options| options.freshness),
        false => get_freshness(&asked.query),
    };
    let Ok(Freshness::AtLeast(version) | Freshness::Exactly(version)) = freshness else {
        return Ok(true);
    };
    let resource = subject.kind.stored_as();
    let range = match path.name.is_empty() {
        true => Range::All,
        false => Range::Name(get::name(&subject.kind, path)),
    };
    let _pass = api.gate.request(&asked.user.name)?;
    let reached = api.reader.reached((&resource, &range), &version);
    let reached = tokio::time::timeout(REACHED_WITHIN, reached).await;
    Ok(reached.is_ok())
}

/// The part of a resource that is wanted: one object, where a field says so.
pub(super) fn narrowed(want: &Want) -> Range {
    let namespace = match &want.range {
        Range::All => "",
        Range::Namespace(namespace) => namespace,
        other => return other.clone(),
    };
    match want.selector.fields.exact("metadata.name") {
        // Without a namespace it may be in any.
        Some(name) if !namespace.is_empty() => Range::Name(ObjectName::new(namespace, name)),
        _ => want.range.clone(),
    }
}
