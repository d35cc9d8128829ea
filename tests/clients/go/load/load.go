// Package load is heavy change: several writers at once, each of whose writes is noted with what
// the server answered.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast.example/tests/clients/history"
)

// Shards are the values that the label "shard" takes. Objects move between them.
const Shards = 4

// ShardLabel is the label that selectors look at.
const ShardLabel = "shard"

// Load is a running load.
type Load struct {
	Log  history.Log
	Plan Plan

	mutex   sync.Mutex
	written int
	waiting map[int][]chan struct{}
}

// Plan says how much is written.
type Plan struct {
	Writers int
	// Objects are made first, then as many Changes are done to them.
	Objects, Changes int
	// Pause is how long a writer rests after each change.
	Pause time.Duration
	// Rand gives each writer its numbers.
	Rand func(stream uint64) *rand.Rand
}

// Total is how many writes there are at least.
func (p Plan) Total() int {
	return p.Objects + p.Changes
}

// New is a load that was not started.
func New(plan Plan) *Load {
	return &Load{Plan: plan, waiting: map[int][]chan struct{}{}}
}

// Reached is closed when so many percent of the plan are written.
func (l *Load) Reached(percent int) <-chan struct{} {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	reached := make(chan struct{})
	count := l.Plan.Total() * percent / 100
	if l.written >= count {
		close(reached)
	} else {
		l.waiting[count] = append(l.waiting[count], reached)
	}
	return reached
}

func (l *Load) wrote() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.written++
	for _, reached := range l.waiting[l.written] {
		close(reached)
	}
	delete(l.waiting, l.written)
}

// writer is one of several that write at the same time.
type writer interface {
	// populate makes one more object.
	populate(ctx context.Context) error
	// change does something to one.
	change(ctx context.Context) error
	// finish makes the last object of all, and gives its version.
	finish(ctx context.Context) (history.Version, error)
}

// run has all writers do their part. The first failure ends all. It gives the version of the last
// write, after which nothing comes.
func (l *Load) run(ctx context.Context, writers []writer) (history.Version, error) {
	if err := l.together(ctx, writers); err != nil {
		return "", err
	}
	return writers[0].finish(ctx)
}

func (l *Load) together(ctx context.Context, writers []writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for number, writer := range writers {
		running.Go(func() {
			if err := l.work(ctx, writer); err != nil {
				cancel(fmt.Errorf("writer %d: %w", number, err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

func (l *Load) work(ctx context.Context, writer writer) error {
	for range l.Plan.Objects / l.Plan.Writers {
		if err := writer.populate(ctx); err != nil {
			return err
		}
		l.wrote()
	}
	for range l.Plan.Changes / l.Plan.Writers {
		if err := writer.change(ctx); err != nil {
			return err
		}
		l.wrote()
		time.Sleep(l.Plan.Pause)
	}
	return nil
}
