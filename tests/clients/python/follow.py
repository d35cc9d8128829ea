"""Follows services at the server of KUBECONFIG while they are written to the one of E2E_WITNESS,
which it is a replica of, for as many seconds as the first word says. The replica may be cut off and
restarted meanwhile. No object may go back, and in the end all is as the witness has it."""

import os
import random
import sys
import threading
import time

import urllib3
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

PATIENCE_SECONDS = 150
PAUSE_SECONDS = 0.05
# Few names, so that they are used again and again.
NAMES = 20


def versions(items):
    return {it.metadata.name: (it.metadata.uid, int(it.metadata.resource_version)) for it in items}


class Follower:
    """A list and a watch from it, again and again, as programs do it by hand."""

    def __init__(self, core, namespace):
        self.core, self.namespace = core, namespace
        self.held, self.faults = {}, []
        self.events = self.lists = 0
        self.lock = threading.Lock()

    def run(self):
        while True:
            try:
                self.follow()
            except (ApiException, urllib3.exceptions.HTTPError):
                # It is not there for a while, or no longer knows what was: a new list goes on.
                time.sleep(0.2)

    def follow(self):
        listed = self.core.list_namespaced_service(self.namespace)
        with self.lock:
            self.lists += 1
            now = versions(listed.items)
            for name, at in now.items():
                self.check(name, at)
            self.held = now
        version = listed.metadata.resource_version
        stream = watch.Watch().stream(
            self.core.list_namespaced_service,
            self.namespace,
            resource_version=version,
            timeout_seconds=30,
        )
        for event in stream:
            with self.lock:
                self.take(event["type"], event["object"])

    def take(self, kind, item):
        self.events += 1
        name = item.metadata.name
        at = (item.metadata.uid, int(item.metadata.resource_version))
        if kind != "DELETED":
            self.check(name, at)
            self.held[name] = at
        elif self.held.pop(name, None) is None:
            self.faults.append(f"{name} went and was not there")

    def check(self, name, at):
        held = self.held.get(name)
        if held and held[0] == at[0] and held[1] > at[1]:
            self.faults.append(f"{name}: from {held[1]} back to {at[1]}")


def write(core, namespace, seconds):
    dice = random.Random(6)
    end = time.monotonic() + seconds
    spec = client.V1ServiceSpec(type="ExternalName", external_name="example.test")
    while time.monotonic() < end:
        name = f"s-{dice.randrange(NAMES)}"
        metadata = client.V1ObjectMeta(name=name)
        note = {"metadata": {"annotations": {"note": str(dice.random())}}}
        try:
            match dice.randrange(4):
                case 0:
                    made = client.V1Service(metadata=metadata, spec=spec)
                    core.create_namespaced_service(namespace, made)
                case 1:
                    core.delete_namespaced_service(name, namespace)
                case _:
                    core.patch_namespaced_service(name, namespace, note)
        except ApiException as refused:
            # What is not there, or is there already, is no fault.
            if refused.status not in (404, 409):
                raise
        time.sleep(PAUSE_SECONDS)


def main():
    seconds = float(sys.argv[1])
    witness = client.CoreV1Api(config.new_client_from_config(os.environ["E2E_WITNESS"]))
    replica = client.CoreV1Api(config.new_client_from_config())
    namespace = f"python-follow-{os.getpid()}"
    witness.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
    follower = Follower(replica, namespace)
    threading.Thread(target=follower.run, daemon=True).start()
    write(witness, namespace, seconds)
    wanted = versions(witness.list_namespaced_service(namespace).items)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with follower.lock:
            if follower.held == wanted:
                break
            if time.monotonic() > deadline:
                sys.exit(f"it has {follower.held} and not {wanted}")
        time.sleep(0.05)
    if follower.faults:
        sys.exit(f"faults: {follower.faults}")
    counts = f"{follower.events} events, {follower.lists} lists"
    print(f"ok   python: {counts}, {len(wanted)} services = list", flush=True)


if __name__ == "__main__":
    main()
