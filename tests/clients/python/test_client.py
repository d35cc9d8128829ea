"""The official Python client against the cluster that KUBECONFIG names: lists, watches, writes."""

import itertools
import json
import os
import ssl
import threading
import time
import unittest
import urllib.error
import urllib.request

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

NAMES = itertools.count()
WATCH_SECONDS = 20

# The API of a node of Holdfast is not asked everything that its cluster is.
ON_A_NODE = os.environ.get("E2E_SERVER") == "node"
PASSED_ON = unittest.skipIf(ON_A_NODE, "the cluster answers, and would be waited for once more")


def config_map(name, data=None, **labels):
    metadata = client.V1ObjectMeta(name=name, labels=labels or None)
    return client.V1ConfigMap(metadata=metadata, data=data)


class ClientTest(unittest.TestCase):
    """Each test works in a namespace of its own."""

    def setUp(self):
        self.api = config.new_client_from_config()
        self.addCleanup(self.api.close)
        self.core = client.CoreV1Api(self.api)
        self.namespace = f"python-{os.getpid()}-{next(NAMES)}"
        metadata = client.V1ObjectMeta(name=self.namespace)
        self.core.create_namespace(client.V1Namespace(metadata=metadata))
        self.addCleanup(self.core.delete_namespace, self.namespace)

    def create(self, name, data=None, **labels):
        return self.core.create_namespaced_config_map(
            self.namespace, config_map(name, data, **labels)
        )

    def list(self, **options):
        """Lists the test's own objects, without those that every namespace has."""
        options.setdefault("field_selector", "metadata.name!=kube-root-ca.crt")
        return self.core.list_namespaced_config_map(self.namespace, **options)

    def events(self, version, count, **options):
        """The first events above this version, as (type, name)."""
        options.setdefault("field_selector", "metadata.name!=kube-root-ca.crt")
        stream = watch.Watch().stream(
            self.core.list_namespaced_config_map,
            self.namespace,
            resource_version=version,
            timeout_seconds=WATCH_SECONDS,
            **options,
        )
        found = []
        for event in itertools.islice(stream, count):
            found.append((event["type"], event["object"]))
        return found

    def once_too_old(self, ask):
        """Asks until the answer is 410, and gives that.

        A cluster forgets the past after some time or after many bytes, so both go by here.
        A kube-apiserver doubles what it remembers each time that this is full and none of it
        is older than 75 seconds: under constant writes it forgets within twice that time.
        """
        large = self.create("large")
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for turn in range(20):
                large.data = {"k": str(turn % 10) * 1_000_000}
                large = self.core.replace_namespaced_config_map("large", self.namespace, large)
            try:
                ask()
            except ApiException as refused:
                self.assertEqual(refused.status, 410)
                return refused
        self.fail("nothing was ever too old")


class Lists(ClientTest):
    def test_a_list_in_pages_is_whole_and_of_one_moment(self):
        for number in range(25):
            self.create(f"map-{number:02}")
        names, versions, token = [], set(), None
        while True:
            page = self.list(limit=7, _continue=token)
            names += [item.metadata.name for item in page.items]
            versions.add(page.metadata.resource_version)
            if token is None:
                # A change between two pages is not in the later ones: they are of the same moment.
                self.create("map-99")
                self.core.delete_namespaced_config_map("map-24", self.namespace)
            token = page.metadata._continue
            if not token:
                break
        self.assertEqual(names, [f"map-{number:02}" for number in range(25)])
        self.assertEqual(len(versions), 1)

    @PASSED_ON
    def test_a_page_whose_moment_is_too_old_is_gone_and_offers_another_way(self):
        for number in range(4):
            self.create(f"map-{number}")
        page = self.list(limit=2)
        gone = self.once_too_old(
            lambda: self.list(limit=2, _continue=page.metadata._continue)
        )
        status = json.loads(gone.body)
        self.assertEqual(status["reason"], "Expired")
        rest = self.list(limit=500, _continue=status["metadata"]["continue"])
        names = [item.metadata.name for item in rest.items]
        self.assertEqual(names, ["map-2", "map-3"])

    def test_selectors_choose(self):
        self.create("one", colour="red")
        self.create("two", colour="green")
        found = self.list(label_selector="colour in (red, blue)")
        self.assertEqual([item.metadata.name for item in found.items], ["one"])
        found = self.list(field_selector="metadata.name=two")
        self.assertEqual([item.metadata.name for item in found.items], ["two"])

    def test_a_version_of_the_future_is_not_there_yet(self):
        with self.assertRaises(ApiException) as caught:
            self.list(resource_version=str(2**60))
        self.assertEqual(caught.exception.status, 504)
        self.assertIn("Too large resource version", caught.exception.body)


class Watches(ClientTest):
    def test_a_watch_sees_each_change_once_and_in_order(self):
        version = self.list().metadata.resource_version
        first = self.create("a")
        first.data = {"k": "v"}
        self.core.replace_namespaced_config_map("a", self.namespace, first)
        self.create("b")
        self.core.delete_namespaced_config_map("a", self.namespace)
        found = [(kind, item.metadata.name) for kind, item in self.events(version, 4)]
        expected = [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
        self.assertEqual(found, expected)

    def test_a_watch_resumes_where_it_was_left(self):
        version = self.list().metadata.resource_version
        for number in range(21):
            self.create(f"map-{number:02}")
        seen = []
        while len(seen) < 21:
            for _, item in self.events(version, 3):
                seen.append(item.metadata.name)
                version = item.metadata.resource_version
        self.assertEqual(seen, [f"map-{number:02}" for number in range(21)])

    def test_a_watch_hears_what_is_written_while_it_is_open(self):
        version = self.list().metadata.resource_version
        writer = threading.Timer(0.5, self.create, ["late"])
        writer.start()
        [(kind, item)] = self.events(version, 1)
        writer.join()
        self.assertEqual((kind, item.metadata.name), ("ADDED", "late"))

    def test_leaving_a_selector_is_a_deletion_and_coming_back_an_addition(self):
        version = self.list().metadata.resource_version
        item = self.create("a", colour="red")
        for colour in ("green", "red"):
            item.metadata.labels = {"colour": colour}
            item = self.core.replace_namespaced_config_map("a", self.namespace, item)
        found = [kind for kind, _ in self.events(version, 3, label_selector="colour=red")]
        self.assertEqual(found, ["ADDED", "DELETED", "ADDED"])

    def test_a_watch_ends_when_its_time_is_over(self):
        stream = watch.Watch().stream(
            self.core.list_namespaced_config_map,
            self.namespace,
            resource_version=self.list().metadata.resource_version,
            field_selector="metadata.name!=kube-root-ca.crt",
            timeout_seconds=1,
        )
        self.assertEqual(list(stream), [])

    @PASSED_ON
    def test_a_version_that_is_too_old_is_gone_and_a_new_list_goes_on(self):
        version = self.list().metadata.resource_version
        self.once_too_old(lambda: self.events(version, 1))
        version = self.list().metadata.resource_version
        self.create("after")
        [(kind, item)] = self.events(version, 1)
        self.assertEqual((kind, item.metadata.name), ("ADDED", "after"))

    def test_bookmarks_come_when_a_watch_ends(self):
        version = self.list().metadata.resource_version
        self.create("a")
        # A kube-apiserver looks for watches that are about to end once a second, and passes over
        # some when it is busy: it has three tries. Ours has one.
        running = client.VersionApi(self.core.api_client).get_code().git_version
        for _ in range(1 if "holdfast" in running else 3):
            stream = watch.Watch().stream(
                self.core.list_namespaced_config_map,
                self.namespace,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=5,
            )
            kinds = [event["type"] for event in stream]
            if "BOOKMARK" in kinds:
                return
        self.fail("no bookmark at the end of a watch")


class Writes(ClientTest):
    def test_create_read_patch_replace_delete(self):
        made = self.create("m", {"a": "1"})
        self.assertTrue(made.metadata.uid and made.metadata.creation_timestamp)
        patched = self.core.patch_namespaced_config_map("m", self.namespace, {"data": {"b": "2"}})
        self.assertEqual(patched.data, {"a": "1", "b": "2"})
        steps = [{"op": "remove", "path": "/data/a"}]
        patched = self.core.patch_namespaced_config_map("m", self.namespace, steps)
        self.assertEqual(patched.data, {"b": "2"})
        made.data = {"c": "3"}
        with self.assertRaises(ApiException) as caught:
            self.core.replace_namespaced_config_map("m", self.namespace, made)
        self.assertEqual(caught.exception.status, 409)
        patched.data = {"c": "3"}
        replaced = self.core.replace_namespaced_config_map("m", self.namespace, patched)
        self.assertEqual(replaced.data, {"c": "3"})
        self.core.delete_namespaced_config_map("m", self.namespace)
        with self.assertRaises(ApiException) as caught:
            self.core.read_namespaced_config_map("m", self.namespace)
        self.assertEqual(caught.exception.status, 404)

    def test_a_collection_is_deleted_at_once(self):
        for number in range(5):
            self.create(f"map-{number}", batch="one" if number < 3 else "two")
        self.core.delete_collection_namespaced_config_map(
            self.namespace, label_selector="batch=one"
        )
        self.assertEqual([item.metadata.name for item in self.list().items], ["map-3", "map-4"])

    def test_many_writers_of_one_object_lose_no_update(self):
        self.create("counter", {"n": "0"})

        def add_ten():
            for _ in range(10):
                while True:
                    item = self.core.read_namespaced_config_map("counter", self.namespace)
                    item.data = {"n": str(int(item.data["n"]) + 1)}
                    try:
                        self.core.replace_namespaced_config_map("counter", self.namespace, item)
                        break
                    except ApiException as refused:
                        self.assertEqual(refused.status, 409)

        writers = [threading.Thread(target=add_ten) for _ in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        item = self.core.read_namespaced_config_map("counter", self.namespace)
        self.assertEqual(item.data["n"], "40")

    def test_the_dynamic_client_finds_kinds_by_discovery(self):
        found = dynamic.DynamicClient(self.api)
        deployments = found.resources.get(api_version="apps/v1", kind="Deployment")
        labels = {"app": "web"}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
        deployments.create(body=body, namespace=self.namespace)
        made = deployments.get(name="web", namespace=self.namespace)
        self.assertEqual(made.spec.replicas, 1)
        deployments.delete(name="web", namespace=self.namespace)


class Access(ClientTest):
    @unittest.skipIf(ON_A_NODE, "a node has no anonymous callers")
    def test_nobody_anonymous_gets_beyond_health_and_version(self):
        settings = self.api.configuration
        trust = ssl.create_default_context(cafile=settings.ssl_ca_cert)

        def ask(path):
            with urllib.request.urlopen(settings.host + path, context=trust) as answer:
                return answer.read()

        for path in ("/healthz", "/livez", "/readyz"):
            self.assertEqual(ask(path), b"ok", path)
        self.assertEqual(json.loads(ask("/version"))["major"], "1")
        for path in ("/api", "/apis", "/openapi/v2", "/api/v1/namespaces", "/metrics"):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                ask(path)
            self.assertIn(caught.exception.code, (401, 403), path)
            caught.exception.close()


if __name__ == "__main__":
    unittest.main()
