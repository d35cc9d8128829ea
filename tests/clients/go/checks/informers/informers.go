// Package informers checks that informers of every kind are told all that happens under heavy
// change, whatever befalls them, and end with what the server has.
package informers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/follow"
	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/load"
)

// patience is how long after the last write its event may take to be told. It is only waited for
// where something is wrong.
const patience = 30 * time.Second

// ConfigMaps is informers over thousands of ConfigMaps.
var ConfigMaps = check.Check{Name: "informers", Run: check.Placed(overConfigMaps)}

func overConfigMaps(ctx context.Context, place *check.Place) error {
	change := load.New(load.Plan{Writers: 8, Objects: 2400, Changes: 7200, Rand: place.Rand})
	return stage{
		Place:    place,
		resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
		load:     change,
		write:    change.ConfigMaps,
		writesTo: place.Config(),
		parts:    configMapParts,
		patience: patience,
	}.play(ctx)
}

// Pods is informers with field selectors that pods enter and leave.
var Pods = check.Check{Name: "informers-pods", Run: check.Placed(overPods)}

func overPods(ctx context.Context, place *check.Place) error {
	change := load.New(load.Plan{Writers: 4, Objects: 200, Changes: 2000, Rand: place.Rand})
	return stage{
		Place:    place,
		resource: corev1.SchemeGroupVersion.WithResource("pods"),
		load:     change,
		write:    change.Pods,
		writesTo: place.Config(),
		parts:    podParts,
		patience: patience,
	}.play(ctx)
}

// stage is a load, and informers that look on.
type stage struct {
	*check.Place
	resource schema.GroupVersionResource
	load     *load.Load
	write    func(context.Context, *rest.Config, string) (history.Version, error)
	// writesTo is the server that is written to.
	writesTo *rest.Config
	parts    []part
	// patience is how long after the last write its event may take to be told.
	patience time.Duration
}

// play runs the load with all informers beside it, and judges each of them.
func (s stage) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	witness, err := s.witness(ctx)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	var playing sync.WaitGroup
	defer playing.Wait()
	defer cancel()
	var actors []*actor
	for _, part := range s.parts {
		actor := &actor{part: part, stage: s, ready: make(chan struct{})}
		actors = append(actors, actor)
		playing.Go(func() { actor.err = actor.play(ctx) })
	}
	// Those that begin before the first write have the whole history to tell.
	for _, actor := range actors {
		<-actor.ready
	}
	last, err := s.write(ctx, s.writesTo, s.Namespace)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	seen, err := witness.Finish(last, s.patience)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	told, err := s.load.Log.Order(seen.Events)
	if err != nil {
		return fmt.Errorf("the writes have no order: %w", err)
	}
	playing.Wait()
	for _, actor := range actors {
		what, err := actor.judge(ctx, told)
		s.Report(actor.part.name(), err, "%s", what)
	}
	return nil
}

// witness is a watch from before the first write. It knows when objects were deleted.
func (s stage) witness(ctx context.Context) (*follow.Follower, error) {
	client, err := dynamic.NewForConfig(s.Witness())
	if err != nil {
		return nil, err
	}
	objects := client.Resource(s.resource).Namespace(s.Namespace)
	before, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{ResourceVersion: before.GetResourceVersion()}
	return follow.Start(ctx, follow.Plan{Open: objects.Watch, Options: options}), nil
}
