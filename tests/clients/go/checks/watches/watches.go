// Package watches checks that watches tell every write, once and in order, however often they are
// begun again at the version that was seen last.
package watches

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/follow"
	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/load"
)

// patience is how long after the last write its event may take. It is only waited for where
// something is wrong.
const patience = 30 * time.Second

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Check is the check.
var Check = check.Check{Name: "watches", Run: check.Placed(run)}

func run(ctx context.Context, place *check.Place) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, err := place.Client.CoreV1().ConfigMaps(place.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	w := &watches{
		Place: place,
		from:  before.ResourceVersion,
		load:  load.New(load.Plan{Writers: 6, Objects: 900, Changes: 5100, Rand: place.Rand}),
	}
	if place.Replica() {
		if w.witness, err = w.startWitness(ctx); err != nil {
			return fmt.Errorf("witness: %w", err)
		}
	}
	parts := w.during()
	for _, part := range parts {
		if err := part.start(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	var cutting sync.WaitGroup
	defer cutting.Wait()
	defer cancel()
	for _, part := range parts {
		cutting.Go(func() { part.cut(ctx, w.load) })
	}
	w.began = time.Now()
	last, err := w.load.ConfigMaps(ctx, place.Config(), place.Namespace)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return w.judge(ctx, parts, last)
}

// watches is what the parts have in common.
type watches struct {
	*check.Place
	// from is the version before the first write.
	from string
	load *load.Load
	// began is when that write was.
	began time.Time
	// witness watches what the server is a replica of, if it is one.
	witness *follow.Follower
}

// startWitness watches the server which the judged one is a replica of.
func (w *watches) startWitness(ctx context.Context) (*follow.Follower, error) {
	client, err := kubernetes.NewForConfig(w.Witness())
	if err != nil {
		return nil, err
	}
	return follow.Start(ctx, follow.Plan{
		Open:    client.CoreV1().ConfigMaps(w.Namespace).Watch,
		Options: metav1.ListOptions{ResourceVersion: w.from},
	}), nil
}

// judge takes what the first watch saw for the order of deletions, and compares all with it.
func (w *watches) judge(ctx context.Context, parts []*part, last history.Version) error {
	follower := w.witness
	if follower == nil {
		follower = parts[0].follower
	}
	witness, err := follower.Finish(last, patience)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	told, err := w.load.Log.Order(witness.Events)
	if err != nil {
		return fmt.Errorf("the writes have no order: %w", err)
	}
	whole, err := told.Events(history.Selection{})
	if err != nil {
		return err
	}
	if w.witness == nil {
		w.report(parts[0], witness, history.Exactly(whole, witness.Events))
		parts = parts[1:]
	}
	for _, part := range parts {
		seen, err := part.right(told)
		w.report(part, seen, err)
	}
	for _, part := range w.after(whole) {
		if err := part.start(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		seen, err := part.right(told)
		if age := time.Since(w.began); apierrors.IsResourceExpired(err) && age > w.HistoryMin {
			// Writing took so long that the server need not remember.
			w.Skip(part.name, "not judged: it is too old after %.0f s", age.Seconds())
			continue
		}
		w.report(part, seen, err)
	}
	return nil
}

func (w *watches) report(part *part, seen follow.Seen, err error) {
	what := "each write once and in order"
	if w.Replica() {
		what = "in order, and what is not told was replaced"
	}
	w.Report(part.name, err, "%d events, %s; %d watches, %d bookmarks, %d cuts",
		len(seen.Events), what, seen.Begun, seen.Bookmarks, part.line.Cuts())
}

// right finishes a watch and checks what it saw.
func (p *part) right(told *history.History) (follow.Seen, error) {
	want, err := told.Events(p.selection)
	if err != nil {
		return follow.Seen{}, err
	}
	if len(want[p.skip:]) == 0 {
		return follow.Seen{}, errors.New("nothing of the load is selected: the check is worth nothing")
	}
	if p.replica {
		seen, err := p.follower.FinishWith(history.At(want), patience)
		if err != nil {
			return seen, err
		}
		had := history.At(want[:p.skip])
		_, err = history.Followed(want, history.Watched(had, seen.Events), history.TheEnd)
		return seen, err
	}
	want = want[p.skip:]
	seen, err := p.follower.Finish(want[len(want)-1].Version, patience)
	if err != nil {
		return seen, err
	}
	return seen, history.Exactly(want, seen.Events)
}
