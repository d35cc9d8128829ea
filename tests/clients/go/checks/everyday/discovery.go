package everyday

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// discover finds out what is served, once, and keeps it.
func discover(_ context.Context, p *place) error {
	folder, err := os.MkdirTemp("", "discovery-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	onDisk, err := disk.NewCachedDiscoveryClientForConfig(
		p.Config(), folder+"/found", folder+"/http", time.Minute)
	if err != nil {
		return fmt.Errorf("cached on disk: %w", err)
	}
	for name, client := range map[string]discovery.CachedDiscoveryInterface{
		"on-disk":   onDisk,
		"in-memory": memory.NewMemCacheClient(p.Client.Discovery()),
	} {
		count, err := preferred(client)
		p.Report(name, err, "%d preferred resources, the same from the cache", count)
		p.Report("mapper-"+name, mapped(client), "kinds, resources and short names lead to each other")
	}
	version, err := p.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("version: %w", err)
	}
	p.Report("version", nil, "%s", version.GitVersion)
	paths, err := p.Client.Discovery().OpenAPIV3().Paths()
	if err == nil {
		if _, there := paths["apis/apps/v1"]; !there {
			err = fmt.Errorf("nothing of apps/v1 in %d documents", len(paths))
		}
	}
	p.Report("openapi", err, "there are documents of every group")
	return nil
}

// preferred asks twice; the second answer is the cache's.
func preferred(client discovery.CachedDiscoveryInterface) (int, error) {
	var counts [2]int
	for round := range counts {
		lists, err := client.ServerPreferredResources()
		if err != nil {
			return 0, err
		}
		for _, list := range lists {
			counts[round] += len(list.APIResources)
		}
	}
	switch {
	case counts[0] != counts[1]:
		return 0, fmt.Errorf("%d, and then %d", counts[0], counts[1])
	case counts[0] < 30 || !client.Fresh():
		return 0, fmt.Errorf("%d resources, fresh: %v", counts[0], client.Fresh())
	}
	return counts[0], nil
}

func mapped(client discovery.CachedDiscoveryInterface) error {
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(client)
	mapper := restmapper.NewShortcutExpander(deferred, client, nil)
	for kind, want := range map[schema.GroupKind]string{
		{Kind: "Pod"}:                                             "pods",
		{Group: "apps", Kind: "Deployment"}:                       "deployments",
		{Group: "coordination.k8s.io", Kind: "Lease"}:             "leases",
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: "clusterroles",
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return err
		}
		if got := mapping.Resource; got != kind.WithVersion("v1").GroupVersion().WithResource(want) {
			return fmt.Errorf("%s is %s", kind, got)
		}
		namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if namespaced != (kind.Kind != "ClusterRole") {
			return fmt.Errorf("%s has scope %s", kind, mapping.Scope.Name())
		}
	}
	for short, want := range map[string]string{"deploy": "deployments", "cm": "configmaps"} {
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short})
		if err != nil {
			return fmt.Errorf("%s: %w", short, err)
		}
		if resource.Resource != want {
			return fmt.Errorf("%s is %s", short, resource)
		}
	}
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "none.example", Kind: "None"})
	if !meta.IsNoMatchError(err) {
		return fmt.Errorf("a kind that is not there: %w", err)
	}
	return nil
}
