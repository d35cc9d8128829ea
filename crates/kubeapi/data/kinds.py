#!/usr/bin/env python3
"""Distils kinds.txt from the api/ folder of a Kubernetes source tree.

    python3 kinds.py KUBERNETES/api v1.36.4 > kinds.txt

Run by hand when the version of Kubernetes that we follow moves on; review the difference.
Only facts are taken (names, types, merge rules); descriptions are left behind.

What the file says, line by line:

    group NAME VERSION                  a group-version; NAME is "core" for the core group
    kind KIND PLURAL SINGULAR SCOPE TYPE [short=A,B] [in=CATEGORY] [verbs=A,B]
                                        verbs are left out where they are the usual eight
    sub NAME GROUP/VERSION/KIND VERBS   a subresource of the kind above
    type NAME [= SHAPE] [atomic] [gvk=GROUP/VERSION/KIND]
    FIELD SHAPE [!|!!] [value] [default=JSON] [list=set|atomic|map(KEYS)] [map=atomic]
                [patch=STRATEGY(KEY)]

SHAPE is a JSON type with an optional format (integer:int32), a type's name, []SHAPE or {}SHAPE.
"!" is a field that OpenAPI calls required; "!!" one that is refused when it is missing or empty.
"value" is a struct that is never absent: what it requires is required even if it is left out.
"""

import json
import pathlib
import re
import sys

# Groups are in the order of the real server's /apis, which is the order of their priority.
#
# Left out, and why:
# - apiregistration.k8s.io: there is no aggregation.
# - admissionregistration.k8s.io: there are no webhooks and no CEL. A policy that is stored but never
#   enforced is worse than one that is refused.
# - autoscaling/v1: its HorizontalPodAutoscaler is another shape of the v2 objects and would need
#   conversion on every read. Its Scale is served as a subresource.
# - alpha and beta versions.
GROUPS = [
    ("core", "v1"),
    ("apps", "v1"),
    ("events.k8s.io", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v2"),
    ("batch", "v1"),
    ("certificates.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("coordination.k8s.io", "v1"),
    ("node.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
    ("resource.k8s.io", "v1"),
    ("flowcontrol.apiserver.k8s.io", "v1"),
]
# Bindings are a scheduler's; component statuses are long deprecated.
KINDS_LEFT_OUT = {"Binding", "ComponentStatus"}
# Everything that needs a kubelet behind it (log, exec, attach, portforward, proxy, resize,
# ephemeralcontainers) or a scheduler (binding) is not served by the embedded cluster.
SUBRESOURCES = {"status", "scale", "token", "eviction", "finalize", "approval"}
VERBS = "create delete deletecollection get list patch update watch".split()
# Types that no kind reaches but that clients send or get.
EXTRA_TYPES = [
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
]
PREFIXES = [
    ("io.k8s.apimachinery.pkg.apis.meta.", "meta."),
    ("io.k8s.apimachinery.pkg.api.resource.", "quantity."),
    ("io.k8s.apimachinery.pkg.util.", "util."),
    ("io.k8s.apimachinery.pkg.runtime.", "runtime."),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.api.", ""),
]
SPECIAL = {
    "quantity.Quantity": "quantity",
    "util.intstr.IntOrString": "int-or-string",
}
# Required in OpenAPI, but the server takes an empty one or has its own words for it.
LENIENT = {
    "core.v1.HTTPHeader.value",
    "core.v1.Sysctl.value",
    "certificates.v1.CertificateSigningRequestSpec.request",
}
LENIENT_PREFIXES = ("authentication.", "authorization.", "events.", "meta.v1.WatchEvent")
# Lists are empty when a Go client leaves them out, so only those that must hold something.
STRICT_LISTS = {
    "core.v1.PodSpec.containers",
    "core.v1.NodeSelector.nodeSelectorTerms",
    "core.v1.TopologySelectorLabelRequirement.values",
    "batch.v1.SuccessPolicy.rules",
    "discovery.v1.Endpoint.addresses",
    "flowcontrol.v1.NonResourcePolicyRule.verbs",
    "flowcontrol.v1.NonResourcePolicyRule.nonResourceURLs",
    "flowcontrol.v1.PolicyRulesWithSubjects.subjects",
    "flowcontrol.v1.ResourcePolicyRule.verbs",
    "flowcontrol.v1.ResourcePolicyRule.apiGroups",
    "flowcontrol.v1.ResourcePolicyRule.resources",
    "networking.v1.HTTPIngressRuleValue.paths",
    "rbac.v1.PolicyRule.verbs",
}


def short(name):
    """io.k8s.api.core.v1.Pod -> core.v1.Pod"""
    for long, brief in PREFIXES:
        if name.startswith(long):
            return brief + name[len(long):]
    raise SystemExit(f"no short form for {name}")


def referenced(schema):
    """The name that a schema refers to, if it is a reference."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if len(schema.get("allOf", [])) == 1:
        return referenced(schema["allOf"][0])
    return None


def shape(schema):
    """The SHAPE of a schema, as the head of this file describes it."""
    name = referenced(schema)
    if name:
        return short(name)
    kind = schema.get("type", "any")
    if kind == "array":
        return "[]" + shape(schema["items"])
    if kind == "object" and "additionalProperties" in schema:
        return "{}" + shape(schema["additionalProperties"])
    return f"{kind}:{schema['format']}" if "format" in schema else kind


def enforced(path, prop):
    """Whether a required field is refused when it is missing or empty."""
    if path in LENIENT or path.startswith(LENIENT_PREFIXES):
        return False
    if prop.get("type") == "array":
        return path in STRICT_LISTS
    if prop.get("type") == "string":
        return prop.get("default", "") == ""
    return bool(referenced(prop)) and "default" not in prop


def field_line(owner, name, prop, required):
    words = [name, shape(prop)]
    if name in required:
        words.append("!!" if enforced(f"{owner}.{name}", prop) else "!")
    default = prop.get("default")
    if default == {} and referenced(prop):
        words.append("value")
    # Zero values are how Go writes an absent field; they are not defaults that anyone fills in.
    elif default not in (None, "", 0, False, {}):
        words.append("default=" + json.dumps(default, separators=(",", ":")))
    if "x-kubernetes-list-type" in prop:
        keys = ",".join(prop.get("x-kubernetes-list-map-keys", []))
        words.append("list=" + prop["x-kubernetes-list-type"] + (f"({keys})" if keys else ""))
    if "x-kubernetes-map-type" in prop:
        words.append("map=" + prop["x-kubernetes-map-type"])
    if "x-kubernetes-patch-strategy" in prop:
        key = prop.get("x-kubernetes-patch-merge-key", "")
        words.append(f"patch={prop['x-kubernetes-patch-strategy']}({key})")
    return " " + " ".join(words)


def type_lines(name, schema, served):
    brief = short(name)
    head = ["type", brief]
    if brief in SPECIAL:
        head += ["=", SPECIAL[brief]]
    elif "properties" not in schema:
        head += ["=", shape(schema)]
    if schema.get("x-kubernetes-map-type") == "atomic":
        head.append("atomic")
    for gvk in schema.get("x-kubernetes-group-version-kind", []):
        group = gvk["group"] or "core"
        # DeleteOptions and the like name every group there is; they are the same in each.
        if (group, gvk["version"]) in served or brief.startswith(("autoscaling.", "policy.")):
            if not brief.startswith("meta."):
                head.append(f"gvk={group}/{gvk['version']}/{gvk['kind']}")
    yield " ".join(head)
    required = schema.get("required", [])
    for field, prop in sorted(schema.get("properties", {}).items()):
        yield field_line(brief, field, prop, required)


def reachable(schemas, roots):
    """Every type that the roots lead to."""
    seen, queue = set(), list(roots)
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            text = json.dumps(schemas[name])
            queue += re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', text)
    return sorted(seen, key=short)


def kind_lines(resources, group, version, type_of):
    main = [r for r in resources if "/" not in r["name"] and r["kind"] not in KINDS_LEFT_OUT]
    for r in main:
        scope = "namespaced" if r["namespaced"] else "cluster"
        line = ["kind", r["kind"], r["name"], r["singularName"], scope]
        line.append(short(type_of[group, version, r["kind"]]))
        if r.get("shortNames"):
            line.append("short=" + ",".join(r["shortNames"]))
        if r.get("categories"):
            line.append("in=" + ",".join(r["categories"]))
        if r["verbs"] != VERBS:
            line.append("verbs=" + ",".join(r["verbs"]))
        yield " ".join(line)
        for sub in resources:
            owner, _, name = sub["name"].partition("/")
            if owner == r["name"] and name in SUBRESOURCES:
                gvk = "/".join(
                    [sub.get("group", group), sub.get("version", version), sub["kind"]]
                )
                yield f" sub {name} {gvk} {','.join(sub['verbs'])}"


def main(api, release):
    spec = api / "openapi-spec" / "v3"
    schemas, type_of = {}, {}
    groups = GROUPS + [("autoscaling", "v1")]
    for group, version in groups:
        stem = f"api__{version}" if group == "core" else f"apis__{group}__{version}"
        doc = json.loads((spec / f"{stem}_openapi.json").read_text())
        schemas.update(doc["components"]["schemas"])
    for name, schema in schemas.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", []):
            if not name.startswith("io.k8s.apimachinery."):
                type_of[gvk["group"] or "core", gvk["version"], gvk["kind"]] = name
    print(f"# Facts of Kubernetes {release}, made by kinds.py, which explains the lines. Not edited.")
    roots = list(EXTRA_TYPES)
    for group, version in GROUPS:
        stem = f"api__{version}" if group == "core" else f"apis__{group}__{version}"
        listed = json.loads((api / "discovery" / f"{stem}.json").read_text())["resources"]
        print(f"\ngroup {group} {version}")
        for line in kind_lines(listed, group, version, type_of):
            print(line)
        roots += [
            type_of[group, version, r["kind"]]
            for r in listed
            if "/" not in r["name"] and r["kind"] not in KINDS_LEFT_OUT
        ]
    for name in reachable(schemas, roots):
        print()
        for line in type_lines(name, schemas[name], set(GROUPS)):
            print(line)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
