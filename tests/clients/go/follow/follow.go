// Package follow reads a watch to its end, however often it is begun again, and notes every event.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"holdfast.example/tests/clients/history"
)

// Open begins a watch.
type Open func(context.Context, metav1.ListOptions) (watch.Interface, error)

// Plan says what is watched and how.
type Plan struct {
	Open Open
	// Options are sent with every watch; their version is where the first one begins.
	Options metav1.ListOptions
	// Had is what was there at the version where the first watch begins.
	Had history.States
	// Burst gives the number of events after which the next watch is given up and begun again.
	// Without it only the server ends a watch.
	Burst func() int
}

// Seen is what was seen.
type Seen struct {
	Events []history.Event
	// Begun counts watches, Bookmarks what only told of progress.
	Begun, Bookmarks int
}

// Follower follows a watch until it is told to finish.
type Follower struct {
	plan   Plan
	finish chan end
	done   chan struct{}
	last   history.Version
	has    history.States
	seen   Seen
	err    error
}

// end is when nothing more can come: at a version, or, where states may be left out, with these.
type end struct {
	version history.Version
	states  history.States
}

// Start begins to follow.
func Start(ctx context.Context, plan Plan) *Follower {
	f := &Follower{
		plan:   plan,
		finish: make(chan end, 1),
		done:   make(chan struct{}),
		last:   history.Version(plan.Options.ResourceVersion),
		has:    history.States{},
	}
	for name, state := range plan.Had {
		f.has[name] = state
	}
	go func() {
		defer close(f.done)
		f.err = f.run(ctx)
	}()
	return f
}

// Finish waits for the event of the version, which is the last that can come, and gives all.
func (f *Follower) Finish(last history.Version, patience time.Duration) (Seen, error) {
	f.finish <- end{version: last}
	select {
	case <-f.done:
		return f.seen, f.err
	case <-time.After(patience):
		return Seen{}, fmt.Errorf("version %s was not seen within %s", last, patience)
	}
}

// FinishWith waits until what was seen adds up to these states, and gives all.
func (f *Follower) FinishWith(states history.States, patience time.Duration) (Seen, error) {
	f.finish <- end{states: states}
	select {
	case <-f.done:
		return f.seen, f.err
	case <-time.After(patience):
		return Seen{}, fmt.Errorf("the %d objects of the end were not seen within %s",
			len(states), patience)
	}
}

// reached says whether nothing more can come.
func (f *Follower) reached(end *end) bool {
	switch {
	case end == nil:
		return false
	case end.states != nil:
		return f.has.Same(end.states) == nil
	}
	return !end.version.Newer(f.last)
}

// errFinished ends run.
var errFinished = errors.New("finished")

func (f *Follower) run(ctx context.Context) error {
	if _, err := history.Parse(f.plan.Options.ResourceVersion); err != nil {
		return err
	}
	var end *end
	for {
		options := f.plan.Options
		options.ResourceVersion = string(f.last)
		stream, err := f.plan.Open(ctx, options)
		if err != nil {
			return fmt.Errorf("watch from %s: %w", f.last, err)
		}
		f.seen.Begun++
		err = f.read(ctx, stream, &end)
		stream.Stop()
		switch {
		case errors.Is(err, errFinished):
			return nil
		case err != nil:
			return fmt.Errorf("watch from %s: %w", options.ResourceVersion, err)
		}
	}
}

// read takes events until the watch ends or is given up.
func (f *Follower) read(ctx context.Context, stream watch.Interface, end **end) error {
	left := -1
	if f.plan.Burst != nil {
		left = f.plan.Burst()
	}
	for left != 0 {
		if f.reached(*end) {
			return errFinished
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case last := <-f.finish:
			*end = &last
		case event, more := <-stream.ResultChan():
			if !more {
				return nil
			}
			if err := f.take(event); err != nil {
				return err
			}
			if event.Type != watch.Bookmark {
				left--
			}
		}
	}
	return nil
}

func (f *Follower) take(event watch.Event) error {
	switch event.Type {
	case watch.Error:
		return apierrors.FromObject(event.Object)
	case watch.Bookmark:
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return fmt.Errorf("bookmark: %w", err)
		}
		version, err := history.Parse(object.GetResourceVersion())
		if err != nil {
			return fmt.Errorf("bookmark: %w", err)
		}
		if f.last.Newer(version) {
			return fmt.Errorf("a bookmark goes back from %s to %s", f.last, version)
		}
		f.last = version
		f.seen.Bookmarks++
	default:
		told, err := history.EventOf(event)
		if err != nil {
			return err
		}
		if !told.Version.Newer(f.last) {
			return fmt.Errorf("at %s came an event that is not newer: %v", f.last, told)
		}
		f.last = told.Version
		if history.Ours(event.Object) {
			f.seen.Events = append(f.seen.Events, told)
			f.has.Apply(told)
		}
	}
	return nil
}
