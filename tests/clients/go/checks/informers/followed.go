package informers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/load"
	"holdfast.example/tests/clients/observe"
)

// Followed is informers of a replica that is cut off from its source, and ended and started again,
// by whoever runs this. What is written is written to the source, all along; a replica tells all of
// it in the end, and goes back never. The pods are those of the node whose API it is.
var Followed = []check.Check{
	{Name: "followed-pods", Run: check.Placed(followPods)},
	{Name: "followed-services", Run: check.Placed(followServices)},
}

// A change every so often of each of two writers.
const (
	followedWriters = 2
	followedPause   = 100 * time.Millisecond
)

// longPatience is for a replica that was away for long: it waits a minute before it tries again.
const longPatience = 150 * time.Second

func followPods(ctx context.Context, place *check.Place) error {
	change := load.New(followedPlan(place))
	return stage{
		Place:    place,
		resource: corev1.SchemeGroupVersion.WithResource("pods"),
		load:     change,
		write:    change.Pods,
		writesTo: place.Witness(),
		parts:    followers("spec.nodeName=" + load.NodeName(1)),
		patience: longPatience,
	}.play(ctx)
}

func followServices(ctx context.Context, place *check.Place) error {
	change := load.New(followedPlan(place))
	return stage{
		Place:    place,
		resource: corev1.SchemeGroupVersion.WithResource("services"),
		load:     change,
		write:    change.Services,
		writesTo: place.Witness(),
		parts:    followers(""),
		patience: longPatience,
	}.play(ctx)
}

func followedPlan(place *check.Place) load.Plan {
	return load.Plan{
		Writers: followedWriters,
		Objects: 30,
		Changes: followedWriters * int(place.During/followedPause),
		Rand:    place.Rand,
		Pause:   followedPause,
	}
}

// followers are informers of every kind, and some that are stopped and started again in between.
func followers(fields string) []part {
	var parts []part
	for _, flavour := range []observe.Flavour{observe.Typed, observe.Dynamic, observe.Metadata} {
		for _, mode := range []observe.Mode{observe.Listing, observe.Streaming} {
			parts = append(parts, part{flavour: flavour, mode: mode, fields: fields, starts: atOnce})
		}
	}
	for _, mode := range []observe.Mode{observe.Listing, observe.Streaming} {
		parts = append(parts, part{flavour: observe.Typed, mode: mode, labels: twoShards,
			fields: fields, starts: again})
	}
	return parts
}
