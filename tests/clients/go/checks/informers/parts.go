package informers

import (
	"fmt"
	"strings"

	"holdfast.example/tests/clients/load"
	"holdfast.example/tests/clients/observe"
)

// part is an informer's part in a check: what it looks at, and what befalls it.
type part struct {
	flavour observe.Flavour
	mode    observe.Mode
	labels  string
	fields  string
	// starts are the percents of the load at which an informer is started, the one before it
	// stopped.
	starts []int
	// cuts are those at which its connection is cut.
	cuts []int
}

var (
	// atOnce is from before the first write to the end.
	atOnce = []int{0}
	// late is from the middle of change to the end.
	late = []int{55}
	// again is stopped and started, as a program is.
	again = []int{0, 15, 30, 40, 50, 60, 70, 80, 90}
	// often cuts the connection; informers go on where they were.
	often = []int{10, 20, 30, 40, 50, 60, 70, 80, 90}
)

const (
	twoShards = load.ShardLabel + " in (1,2)"
	notFirst  = load.ShardLabel + "!=0"
	third     = load.ShardLabel + "=3"
	hot       = "metadata.name=" + load.Hot
	butHot    = "metadata.name!=" + load.Hot
)

var configMapParts = []part{
	{flavour: observe.Typed, mode: observe.Listing, starts: atOnce},
	{flavour: observe.Typed, mode: observe.Streaming, starts: atOnce},
	{flavour: observe.Dynamic, mode: observe.Listing, starts: atOnce, cuts: often},
	{flavour: observe.Dynamic, mode: observe.Streaming, starts: atOnce, cuts: often},
	{flavour: observe.Metadata, mode: observe.Listing, starts: late},
	{flavour: observe.Metadata, mode: observe.Streaming, starts: late},

	{flavour: observe.Typed, mode: observe.Listing, labels: twoShards, starts: again},
	{flavour: observe.Typed, mode: observe.Streaming, labels: twoShards, starts: again},
	{flavour: observe.Dynamic, mode: observe.Listing, labels: notFirst, starts: late},
	{flavour: observe.Dynamic, mode: observe.Streaming, labels: notFirst, starts: again},
	{flavour: observe.Metadata, mode: observe.Listing, labels: third, starts: atOnce, cuts: often},
	{flavour: observe.Metadata, mode: observe.Streaming, labels: third, starts: atOnce, cuts: often},

	{flavour: observe.Typed, mode: observe.Streaming, fields: hot, starts: atOnce},
	{flavour: observe.Metadata, mode: observe.Listing, fields: butHot, starts: again},
	{flavour: observe.Dynamic, mode: observe.Listing, labels: third, fields: hot, starts: atOnce},
}

var podParts = []part{
	{flavour: observe.Typed, mode: observe.Listing, fields: "status.phase=Running",
		starts: atOnce, cuts: often},
	{flavour: observe.Typed, mode: observe.Streaming, fields: "spec.nodeName=" + load.NodeName(1),
		starts: atOnce},
	{flavour: observe.Dynamic, mode: observe.Listing, fields: "spec.nodeName=", starts: again},
	{flavour: observe.Dynamic, mode: observe.Streaming,
		fields: "status.phase!=Failed,spec.nodeName!=", starts: again},
	{flavour: observe.Metadata, mode: observe.Listing, labels: twoShards,
		fields: "status.phase=Pending", starts: late},
	{flavour: observe.Metadata, mode: observe.Streaming, fields: "spec.nodeName=" + load.NodeName(2),
		starts: late},
}

func (p part) name() string {
	what := strings.Join(strings.Fields(p.labels+" "+p.fields), " ")
	if what == "" {
		what = "all"
	}
	return fmt.Sprintf("%s/%s/%s", p.flavour, p.mode, what)
}
