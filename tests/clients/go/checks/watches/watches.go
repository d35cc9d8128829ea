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
}

// judge takes what the first watch saw for the order of deletions, and compares all with it.
func (w *watches) judge(ctx context.Context, parts []*part, last history.Version) error {
	witness, err := parts[0].follower.Finish(last, patience)
	if err != nil {
		return fmt.Errorf("%s: %w", parts[0].name, err)
	}
	told, err := w.load.Log.Order(witness.Events)
	if err != nil {
		return fmt.Errorf("the writes have no order: %w", err)
	}
	whole, err := told.Events(history.Selection{})
	if err != nil {
		return err
	}
	w.report(parts[0], witness, history.Exactly(whole, witness.Events))
	for _, part := range parts[1:] {
		seen, err := part.exact(told)
		w.report(part, seen, err)
	}
	for _, part := range w.after(whole) {
		if err := part.start(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		seen, err := part.exact(told)
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
	w.Report(part.name, err,
		"%d events, each write once and in order; %d watches, %d bookmarks, %d cuts",
		len(seen.Events), seen.Begun, seen.Bookmarks, part.line.Cuts())
}

// exact finishes a watch and checks what it saw.
func (p *part) exact(told *history.History) (follow.Seen, error) {
	want, err := told.Events(p.selection)
	if err != nil {
		return follow.Seen{}, err
	}
	want = want[p.skip:]
	if len(want) == 0 {
		return follow.Seen{}, errors.New("nothing of the load is selected: the check is worth nothing")
	}
	seen, err := p.follower.Finish(want[len(want)-1].Version, patience)
	if err != nil {
		return seen, err
	}
	return seen, history.Exactly(want, seen.Events)
}
