package observe

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"holdfast.example/tests/clients/history"
)

// Flavour is a kind of informer.
type Flavour string

// The three that client-go has.
const (
	Typed    Flavour = "typed"
	Dynamic  Flavour = "dynamic"
	Metadata Flavour = "metadata"
)

// Parts says what of the objects it gets.
func (f Flavour) Parts() history.Parts {
	if f == Metadata {
		return history.MetadataOnly
	}
	return history.Whole
}

// Mode is how an informer gets its first state.
type Mode string

const (
	// Listing lists in pages, and then watches.
	Listing Mode = "listing"
	// Streaming has the watch begin with what is there.
	Streaming Mode = "streaming"
)

// source is an informer that can be started, and the list that it must agree with.
type source struct {
	informer cache.SharedIndexInformer
	start    func(stop <-chan struct{})
	shutdown func()
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
}

// A client that says so gets no streaming lists from its reflectors, whatever the feature gate of
// the program says: client-go has these methods for clients of servers without them.
type (
	listingTyped    struct{ kubernetes.Interface }
	listingDynamic  struct{ dynamic.Interface }
	listingMetadata struct{ metadata.Interface }
)

func (listingTyped) IsWatchListSemanticsUnSupported() bool    { return true }
func (listingDynamic) IsWatchListSemanticsUnSupported() bool  { return true }
func (listingMetadata) IsWatchListSemanticsUnSupported() bool { return true }

// open makes an informer as programs make them: with a factory.
func open(config *rest.Config, spec Spec) (*source, error) {
	tweak := func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = spec.Labels, spec.Fields
	}
	switch spec.Flavour {
	case Typed:
		return openTyped(config, spec, tweak)
	case Dynamic:
		return openDynamic(config, spec, tweak)
	case Metadata:
		return openMetadata(config, spec, tweak)
	}
	return nil, fmt.Errorf("there are no %s informers", spec.Flavour)
}

func openTyped(
	config *rest.Config, spec Spec, tweak func(*metav1.ListOptions),
) (*source, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("typed client: %w", err)
	}
	var client kubernetes.Interface = clientset
	if spec.Mode == Listing {
		client = listingTyped{client}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(spec.Namespace), informers.WithTweakListOptions(tweak))
	found, err := factory.ForResource(spec.Resource)
	if err != nil {
		return nil, fmt.Errorf("typed informer: %w", err)
	}
	return &source{found.Informer(), factory.Start, factory.Shutdown,
		lister(clientset, spec)}, nil
}

// lister lists with a typed client.
func lister(
	client kubernetes.Interface, spec Spec,
) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		core := client.CoreV1()
		switch spec.Resource.GroupResource() {
		case schema.GroupResource{Resource: "configmaps"}:
			return core.ConfigMaps(spec.Namespace).List(ctx, options)
		case schema.GroupResource{Resource: "secrets"}:
			return core.Secrets(spec.Namespace).List(ctx, options)
		case schema.GroupResource{Resource: "services"}:
			return core.Services(spec.Namespace).List(ctx, options)
		case schema.GroupResource{Resource: "pods"}:
			return core.Pods(spec.Namespace).List(ctx, options)
		}
		return nil, fmt.Errorf("no typed list of %s here", spec.Resource)
	}
}

func openDynamic(
	config *rest.Config, spec Spec, tweak func(*metav1.ListOptions),
) (*source, error) {
	clientset, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("dynamic client: %w", err)
	}
	var client dynamic.Interface = clientset
	if spec.Mode == Listing {
		client = listingDynamic{client}
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		client, 0, spec.Namespace, tweak)
	return &source{factory.ForResource(spec.Resource).Informer(), factory.Start, factory.Shutdown,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return clientset.Resource(spec.Resource).Namespace(spec.Namespace).List(ctx, options)
		}}, nil
}

func openMetadata(
	config *rest.Config, spec Spec, tweak func(*metav1.ListOptions),
) (*source, error) {
	clientset, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("metadata client: %w", err)
	}
	var client metadata.Interface = clientset
	if spec.Mode == Listing {
		client = listingMetadata{client}
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, spec.Namespace, tweak)
	return &source{factory.ForResource(spec.Resource).Informer(), factory.Start, factory.Shutdown,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return clientset.Resource(spec.Resource).Namespace(spec.Namespace).List(ctx, options)
		}}, nil
}
