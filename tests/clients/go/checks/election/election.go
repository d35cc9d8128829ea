// Package election checks leader election by Lease: however a leader goes, another one takes over,
// and there are never two.
package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.example/tests/clients/check"
)

// How long a lease lasts, how long a leader tries to renew it, and how often. A leader that cannot
// renew gives up before others may take over. They are two thirds of client-go's own: a leader on a
// busy machine has seven seconds, and where even that was not enough its round starts over.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	retryPeriod   = time.Second
	triesMax      = 3
	leaseName     = "leader"
	// patience is how long nobody may lead. It is only waited for where something is wrong.
	patience = 40 * time.Second
)

// Check is the check.
var Check = check.Check{Name: "election", Run: check.Placed(run)}

func run(ctx context.Context, place *check.Place) error {
	witness, err := watchLease(ctx, place.Client, place.Namespace)
	if err != nil {
		return err
	}
	e := &election{Place: place, terms: &terms{}, witness: witness}
	defer e.stopAll()
	steps := []struct {
		name    string
		ends    ending
		release bool
	}{
		{"released", cancelled, true},
		{"released", cancelled, true},
		{"not-released", cancelled, false},
		{"not-released", cancelled, false},
		// One that gives up its lease works on while it tries to, cut off as it is; client-go
		// leaves it to programs to allow for that.
		{"cut-off", cutOff, false},
		{"cut-off", cutOff, false},
	}
	for _, step := range steps {
		took, err := e.round(ctx, step.ends, step.release)
		e.Report(step.name, err, "the leader went, another one led after %.1f s", took.Seconds())
		if err != nil {
			return nil
		}
	}
	e.stopAll()
	return e.judge(ctx)
}

// ending is how a leader goes.
type ending int

const (
	// cancelled is a program that ends.
	cancelled ending = iota
	// cutOff is one whose network is gone: it has to notice by itself.
	cutOff
)

// election is one run of the check.
type election struct {
	*check.Place
	terms      *terms
	witness    *witness
	candidates []*candidate
	made       int
}

// round has a leader go, and says how long it took until another one led.
func (e *election) round(ctx context.Context, ends ending, release bool) (time.Duration, error) {
	for range triesMax {
		took, err := e.try(ctx, ends, release)
		if !errors.Is(err, errLost) {
			return took, err
		}
	}
	return 0, fmt.Errorf("%d times: %w", triesMax, errLost)
}

// errLost is a leader that went too early.
var errLost = errors.New("the leader lost the lease before it was to go")

// try has three candidates of one kind, waits for one of them to lead, ends it, and says how long
// it took until another one did.
func (e *election) try(ctx context.Context, ends ending, release bool) (time.Duration, error) {
	if err := e.recruit(ctx, release); err != nil {
		return 0, err
	}
	leader, err := e.leader(ctx, nil)
	if err != nil {
		return 0, err
	}
	// A leader that is stopped in the middle of a renewal cannot give up the lease: it does not
	// know its version. This one has just renewed it.
	if err := e.witness.renewed(leader); err != nil {
		return 0, err
	}
	began := time.Now()
	switch ends {
	case cancelled:
		if !leader.stop() {
			return 0, errLost
		}
	case cutOff:
		leader.line.Down()
		if !leader.leads() {
			leader.line.Up()
			return 0, errLost
		}
		select {
		case <-leader.done:
		case <-time.After(patience):
			return 0, fmt.Errorf("%s still leads %s after it was cut off", leader.name, patience)
		}
		leader.line.Up()
	}
	if _, err := e.leader(ctx, leader); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// recruit sees to it that three candidates run and all of them are of the kind. A leader of another
// kind is ended like a program, and one of the new ones takes over.
func (e *election) recruit(ctx context.Context, release bool) error {
	var kept []*candidate
	var leaving *candidate
	for _, candidate := range e.candidates {
		switch {
		case candidate.ended():
		case candidate.release == release:
			kept = append(kept, candidate)
		case candidate.leads():
			leaving = candidate
		default:
			candidate.stop()
		}
	}
	e.candidates = kept
	for len(e.candidates) < 3 {
		e.made++
		name := fmt.Sprintf("candidate-%d", e.made)
		candidate, err := start(ctx, e, name, release)
		if err != nil {
			return err
		}
		e.candidates = append(e.candidates, candidate)
	}
	if leaving != nil {
		leaving.stop()
	}
	return nil
}

// leader waits until one of the candidates leads that is not the one that went.
func (e *election) leader(ctx context.Context, gone *candidate) (*candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		changed := e.terms.changed()
		for _, candidate := range e.candidates {
			if candidate != gone && candidate.leads() {
				return candidate, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("nobody leads")
		}
	}
}

func (e *election) stopAll() {
	for _, candidate := range e.candidates {
		candidate.stop()
	}
	e.candidates = nil
}

// judge compares what the candidates say with what the lease says.
func (e *election) judge(ctx context.Context) error {
	terms := e.terms.all()
	e.Report("one-at-a-time", alone(terms), "%d terms, none began before the last one ended",
		len(terms))
	lease, err := e.Client.CoordinationV1().Leases(e.Namespace).
		Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	if err := e.witness.reach(lease.ResourceVersion); err != nil {
		return err
	}
	e.Report("transitions", sameTerms(lease, terms), "the lease counts %d transitions",
		len(terms)-1)
	states, free, err := e.witness.judge(terms)
	e.Report("lease", err,
		"%d states of the lease: given up %d times, taken only then or when it was over", states, free)
	return nil
}
