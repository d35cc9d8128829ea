package watches

import (
	"context"
	"fmt"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	watchtools "k8s.io/client-go/tools/watch"

	"holdfast.example/tests/clients/follow"
	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/line"
	"holdfast.example/tests/clients/load"
)

// part is one way to watch.
type part struct {
	name string
	// open makes what begins watches, with a configuration of the part's own line.
	open      func(*rest.Config) (follow.Open, error)
	options   metav1.ListOptions
	selection history.Selection
	burst     func() int
	// skip is how many events were before its version.
	skip int
	// had is what was there at its version.
	had history.States
	// replica is set where states may be left out that were replaced.
	replica bool
	// cuts are percents of the load at which its connection is cut.
	cuts []int

	config   *rest.Config
	line     line.Line
	follower *follow.Follower
}

func (p *part) start(ctx context.Context) error {
	open, err := p.open(p.line.Config(p.config))
	if err != nil {
		return err
	}
	p.options.LabelSelector = p.selection.Labels
	p.options.FieldSelector = p.selection.Fields
	p.follower = follow.Start(ctx, follow.Plan{
		Open: open, Options: p.options, Had: p.had, Burst: p.burst,
	})
	return nil
}

// cut cuts the part's connection where it is to be cut.
func (p *part) cut(ctx context.Context, change *load.Load) {
	for _, percent := range p.cuts {
		select {
		case <-ctx.Done():
			return
		case <-change.Reached(percent):
			p.line.Cut()
		}
	}
}

// bursts gives up a watch after a few events, never the same number.
func bursts(numbers *rand.Rand) func() int {
	return func() int { return 1 + numbers.IntN(60) }
}

// during are the watches beside the load.
func (w *watches) during() []*part {
	second := int64(1)
	parts := []*part{
		{name: "plain", open: w.typed},
		{name: "begun-again", open: w.dynamic, burst: bursts(w.Rand(101))},
		{name: "begun-again/shard in (0,3)", open: w.typed, burst: bursts(w.Rand(102)),
			selection: history.Selection{Labels: load.ShardLabel + " in (0,3)"}},
		{name: "begun-again/one-object", open: w.typed, burst: bursts(w.Rand(103)),
			selection: history.Selection{Fields: "metadata.name=" + load.Hot}},
		{name: "metadata", open: w.metadata, burst: bursts(w.Rand(104)),
			selection: history.Selection{Parts: history.MetadataOnly}},
		{name: "of-all-namespaces", open: w.everywhere, burst: bursts(w.Rand(105)),
			selection: history.Selection{Fields: "metadata.namespace=" + w.Namespace}},
		{name: "ended-by-the-server", open: w.dynamic,
			options: metav1.ListOptions{TimeoutSeconds: &second, AllowWatchBookmarks: true}},
		{name: "cut", open: w.dynamic, cuts: everyTenth},
		{name: "retry-watcher", open: w.retrying, cuts: everyTenth},
	}
	return w.complete(parts)
}

// after are watches of what has been: from the first version, and from versions in the middle.
func (w *watches) after(whole []history.Event) []*part {
	parts := []*part{{name: "from-the-first-version", open: w.typed}}
	for _, tenths := range []int{1, 5, 9} {
		skip := len(whole) * tenths / 10
		parts = append(parts, &part{
			name:    fmt.Sprintf("from-version-of-%d0-percent", tenths),
			open:    w.dynamic,
			options: metav1.ListOptions{ResourceVersion: string(whole[skip-1].Version)},
			skip:    skip,
			had:     history.At(whole[:skip]),
		})
	}
	return w.complete(parts)
}

func (w *watches) complete(parts []*part) []*part {
	for _, part := range parts {
		part.config, part.replica = w.Config(), w.Replica()
		if part.options.ResourceVersion == "" {
			part.options.ResourceVersion = w.from
		}
	}
	return parts
}

var everyTenth = []int{10, 20, 30, 40, 50, 60, 70, 80, 90}

func (w *watches) typed(config *rest.Config) (follow.Open, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().ConfigMaps(w.Namespace).Watch, nil
}

func (w *watches) dynamic(config *rest.Config) (follow.Open, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(configMaps).Namespace(w.Namespace).Watch, nil
}

func (w *watches) everywhere(config *rest.Config) (follow.Open, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(configMaps).Watch, nil
}

func (w *watches) metadata(config *rest.Config) (follow.Open, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(configMaps).Namespace(w.Namespace).Watch, nil
}

// retrying opens one RetryWatcher, which begins again by itself.
func (w *watches) retrying(config *rest.Config) (follow.Open, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects := watcher{client.CoreV1().ConfigMaps(w.Namespace).Watch}
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return watchtools.NewRetryWatcherWithContext(ctx, options.ResourceVersion, objects)
	}, nil
}

// watcher is what a RetryWatcher watches with.
type watcher struct {
	open follow.Open
}

// WatchWithContext implements cache.WatcherWithContext.
func (w watcher) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	return w.open(ctx, options)
}
