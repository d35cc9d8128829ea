package observe

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"holdfast.example/tests/clients/history"
)

// recorder notes every call of an informer's handler.
type recorder struct {
	mutex   sync.Mutex
	notices []history.Notice
	has     history.States
	newest  history.Version
	faults  []error
	told    chan struct{}
}

func newRecorder() *recorder {
	return &recorder{has: history.States{}, newest: "1", told: make(chan struct{}, 1)}
}

// OnAdd implements cache.ResourceEventHandler.
func (r *recorder) OnAdd(object any, initial bool) {
	r.note(watch.Added, object, func(notice *history.Notice) error {
		notice.Initial = initial
		return nil
	})
}

// OnUpdate implements cache.ResourceEventHandler.
func (r *recorder) OnUpdate(old, object any) {
	r.note(watch.Modified, object, func(notice *history.Notice) (err error) {
		notice.Old, err = history.Read(old)
		return err
	})
}

// OnDelete implements cache.ResourceEventHandler.
func (r *recorder) OnDelete(object any) {
	tombstone, noticed := object.(cache.DeletedFinalStateUnknown)
	if noticed {
		object = tombstone.Obj
	}
	r.note(watch.Deleted, object, func(notice *history.Notice) error {
		notice.Tombstone = noticed
		return nil
	})
}

func (r *recorder) note(kind watch.EventType, object any, more func(*history.Notice) error) {
	if !history.Ours(object) {
		return
	}
	state, err := history.Read(object)
	notice := history.Notice{Event: history.Event{Type: kind, State: state}}
	if err == nil {
		err = more(&notice)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		r.faults = append(r.faults, fmt.Errorf("%s: %w", kind, err))
	} else {
		r.notices = append(r.notices, notice)
		r.has.Apply(notice.Event)
		if state.Version.Newer(r.newest) {
			r.newest = state.Version
		}
	}
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// wait returns when all that was told adds up to these events. The last of them alone does not say
// so: a list has it among others, in any order.
func (r *recorder) wait(want []history.Event, patience time.Duration) error {
	last, end := want[len(want)-1].Version, history.At(want)
	late := time.After(patience)
	for {
		r.mutex.Lock()
		newest := r.newest
		missing := fmt.Errorf("version %s was not told; the newest is %s", last, newest)
		if !last.Newer(newest) {
			missing = r.has.Same(end)
		}
		r.mutex.Unlock()
		if missing == nil {
			return nil
		}
		select {
		case <-r.told:
		case <-late:
			return fmt.Errorf("after %s: %w", patience, missing)
		}
	}
}

// record gives all notices.
func (r *recorder) record() ([]history.Notice, []error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.notices), slices.Clone(r.faults)
}
