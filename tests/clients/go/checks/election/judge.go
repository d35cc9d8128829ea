package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"holdfast.example/tests/clients/history"
)

// alone checks that no term began before the one before it was over.
func alone(terms []term) error {
	if len(terms) < 7 {
		return fmt.Errorf("only %d terms", len(terms))
	}
	for at, next := range terms[1:] {
		last := terms[at]
		if last.over.IsZero() || next.began.Before(last.over) {
			return fmt.Errorf("%s led from %s, while %s led until %s",
				next.who, next.began, last.who, last.over)
		}
	}
	return nil
}

// sameTerms checks what the lease says of the terms.
func sameTerms(lease *coordinationv1.Lease, terms []term) error {
	switch {
	case lease.Spec.LeaseTransitions == nil:
		return errors.New("the lease counts nothing")
	case int(*lease.Spec.LeaseTransitions) != len(terms)-1:
		return fmt.Errorf("the lease counts %d transitions; there were %d terms",
			*lease.Spec.LeaseTransitions, len(terms))
	}
	return nil
}

// witness is a watch of the lease from before it was made.
type witness struct {
	mutex  sync.Mutex
	leases []*coordinationv1.Lease
	err    error
	told   chan struct{}
}

func watchLease(
	ctx context.Context, client kubernetes.Interface, namespace string,
) (*witness, error) {
	leases := client.CoordinationV1().Leases(namespace)
	before, err := leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	stream, err := leases.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watch leases: %w", err)
	}
	w := &witness{told: make(chan struct{}, 1)}
	go func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			w.take(event)
		}
	}()
	return w, nil
}

func (w *witness) take(event watch.Event) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	lease, ok := event.Object.(*coordinationv1.Lease)
	want := watch.Modified
	if len(w.leases) == 0 {
		want = watch.Added
	}
	switch {
	case !ok || event.Type != want:
		w.err = errors.Join(w.err, fmt.Errorf("an event of type %s, not %s", event.Type, want))
	default:
		w.leases = append(w.leases, lease)
	}
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// reach waits for a version. It need not be the last: a renewal that a candidate has given up may
// still be carried out by a server that is busy.
func (w *witness) reach(version string) error {
	told := 0
	return w.until("version "+version, func(*coordinationv1.Lease) bool {
		for ; told < len(w.leases); told++ {
			if w.leases[told].ResourceVersion == version {
				return true
			}
		}
		return false
	})
}

// renewed waits until a leader has renewed the lease that he took, or does not lead any more.
func (w *witness) renewed(leader *candidate) error {
	return w.until("a renewal by "+leader.name, func(lease *coordinationv1.Lease) bool {
		spec := lease.Spec
		renewed := *spec.HolderIdentity == leader.name && spec.RenewTime.After(spec.AcquireTime.Time)
		return renewed || !leader.leads()
	})
}

// last says what was told last, and what was wrong with it.
func (w *witness) last() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.leases) == 0 {
		return fmt.Sprintf("nothing (%v)", w.err)
	}
	return fmt.Sprintf("version %s (%v)", w.leases[len(w.leases)-1].ResourceVersion, w.err)
}

// until waits until the last state that was told is so.
func (w *witness) until(what string, so func(*coordinationv1.Lease) bool) error {
	late := time.After(patience)
	for {
		w.mutex.Lock()
		count := len(w.leases)
		reached := count > 0 && so(w.leases[count-1])
		w.mutex.Unlock()
		if reached {
			return nil
		}
		select {
		case <-w.told:
		case <-late:
			return fmt.Errorf("the watch of the lease did not tell of %s, only of %s", what, w.last())
		}
	}
}

// judge checks that the lease changed hands as the terms did, and only when it was free. It gives
// how many states it had, and how often nobody held it.
func (w *witness) judge(terms []term) (states, free int, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.err != nil {
		return 0, 0, w.err
	}
	var holders []string
	for at, lease := range w.leases {
		holder := *lease.Spec.HolderIdentity
		if at == 0 {
			holders = append(holders, holder)
			continue
		}
		last := w.leases[at-1]
		if !history.Version(lease.ResourceVersion).Newer(history.Version(last.ResourceVersion)) {
			return 0, 0, fmt.Errorf("version %s after %s", lease.ResourceVersion, last.ResourceVersion)
		}
		switch holder {
		case "":
			free++
			continue
		case *last.Spec.HolderIdentity:
			continue
		}
		if err := wasFree(last, lease); err != nil {
			return 0, 0, err
		}
		holders = append(holders, holder)
	}
	for at, term := range terms {
		if at >= len(holders) || holders[at] != term.who {
			return 0, 0, fmt.Errorf("the lease was held by %v; the terms were %v", holders, terms)
		}
	}
	if len(holders) != len(terms) {
		return 0, 0, fmt.Errorf("the lease was held by %v; there were %d terms", holders, len(terms))
	}
	return len(w.leases), free, nil
}

// wasFree checks that a lease could be taken.
func wasFree(last, taken *coordinationv1.Lease) error {
	if *last.Spec.HolderIdentity == "" {
		return nil
	}
	over := last.Spec.RenewTime.Add(time.Duration(*last.Spec.LeaseDurationSeconds) * time.Second)
	if taken.Spec.AcquireTime.Time.Before(over) {
		return fmt.Errorf("%s took the lease at %s, which %s had until %s",
			*taken.Spec.HolderIdentity, taken.Spec.AcquireTime, *last.Spec.HolderIdentity, over)
	}
	return nil
}
