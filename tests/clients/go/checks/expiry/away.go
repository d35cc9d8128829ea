package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/line"
	"holdfast.example/tests/clients/observe"
)

// away is who is cut off while history goes: informers, and a RetryWatcher.
type away struct {
	expiry    *expiry
	specs     []observe.Spec
	informers []*observe.Informer
	retrying  *watchtools.RetryWatcher
	line      line.Line
}

// startAway starts them, and returns when each has its first state.
func (e *expiry) startAway(ctx context.Context) (*away, error) {
	a := &away{expiry: e}
	for _, flavour := range []observe.Flavour{observe.Typed, observe.Dynamic, observe.Metadata} {
		for _, mode := range []observe.Mode{observe.Listing, observe.Streaming} {
			spec := observe.Spec{
				Flavour: flavour, Mode: mode, Resource: secrets, Namespace: e.Namespace,
			}
			informer, err := observe.Start(e.Config(), spec)
			if err != nil {
				return nil, err
			}
			if err := informer.Synced(ctx); err != nil {
				return nil, err
			}
			a.specs = append(a.specs, spec)
			a.informers = append(a.informers, informer)
		}
	}
	client, err := kubernetes.NewForConfig(a.line.Config(e.Config()))
	if err != nil {
		return nil, err
	}
	secrets := client.CoreV1().Secrets(e.Namespace)
	a.retrying, err = watchtools.NewRetryWatcherWithContext(ctx, e.held[large].ResourceVersion,
		&cache.ListWatch{WatchFuncWithContext: secrets.Watch})
	if err != nil {
		return nil, fmt.Errorf("RetryWatcher: %w", err)
	}
	return a, nil
}

// reached returns when all know of what was written, whose last event is the first since they
// began.
func (a *away) reached() error {
	told, err := a.expiry.log.Order(nil)
	if err != nil {
		return err
	}
	for at, informer := range a.informers {
		want, err := told.Events(a.specs[at].Selection())
		if err != nil {
			return err
		}
		if err := informer.Reached(want, patience); err != nil {
			return fmt.Errorf("%s %s informer: %w", a.specs[at].Flavour, a.specs[at].Mode, err)
		}
	}
	event, err := a.next()
	if err != nil || event.Type != watch.Modified {
		return fmt.Errorf("RetryWatcher: %v, %w", event.Type, err)
	}
	return nil
}

func (a *away) down() {
	a.line.Down()
	for _, informer := range a.informers {
		informer.Line.Down()
	}
}

func (a *away) up() {
	a.line.Up()
	for _, informer := range a.informers {
		informer.Line.Up()
	}
}

// next is the next event of the RetryWatcher.
func (a *away) next() (watch.Event, error) {
	select {
	case event, more := <-a.retrying.ResultChan():
		if !more {
			return event, errors.New("it ended")
		}
		return event, nil
	case <-time.After(patience):
		return watch.Event{}, fmt.Errorf("nothing within %s", patience)
	}
}

// judge checks that all have recovered, or said that they cannot.
func (a *away) judge(ctx context.Context, told *history.History) {
	run := a.expiry.Run
	run.Report("retry-watcher", a.gone(), "it ends with 410, since only its owner can list anew")
	for at, informer := range a.informers {
		spec := a.specs[at]
		judged, err := a.recovered(ctx, spec, informer, told)
		run.Report(fmt.Sprintf("informer/%s/%s", spec.Flavour, spec.Mode), err,
			"%d live, then 410, then a list: %d notices, of them %d deletions missed; store of %d = list",
			judged.Live, judged.Relisted, judged.Tombstones, judged.Objects)
	}
}

func (a *away) gone() error {
	event, err := a.next()
	if err != nil {
		return err
	}
	if event.Type != watch.Error {
		return fmt.Errorf("an event of type %s came first", event.Type)
	}
	if err := expired(apierrors.FromObject(event.Object)); err != nil {
		return err
	}
	if _, more := <-a.retrying.ResultChan(); more {
		return errors.New("it went on")
	}
	return nil
}

func (a *away) recovered(
	ctx context.Context, spec observe.Spec, informer *observe.Informer, told *history.History,
) (observe.Judged, error) {
	want, err := told.Events(spec.Selection())
	if err != nil {
		return observe.Judged{}, err
	}
	err = informer.Reached(want, patience)
	informer.Stop()
	if err != nil {
		return observe.Judged{}, err
	}
	judged, err := informer.Judge(want, history.TheEnd, a.expiry.Replica())
	if err != nil {
		return judged, err
	}
	switch {
	case informer.Line.Expired() == 0:
		return judged, errors.New("its watch was never refused")
	case judged.Tombstones == 0:
		return judged, errors.New("it told of no deletion that it had missed")
	}
	return judged, informer.Agrees(ctx, a.expiry.Witness(), a.expiry.Replica())
}
