package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/observe"
)

// actor plays a part.
type actor struct {
	part  part
	stage stage
	// ready is closed when the load may begin.
	ready chan struct{}

	stopped []*observe.Informer
	running *observe.Informer
	err     error
}

// play does what the part says at the percents of the load it says.
func (a *actor) play(ctx context.Context) error {
	if a.part.starts[0] == 0 {
		if err := a.start(ctx); err != nil {
			close(a.ready)
			return err
		}
	}
	close(a.ready)
	for percent := 1; percent < 100; percent++ {
		starts, cuts := slices.Contains(a.part.starts, percent), slices.Contains(a.part.cuts, percent)
		if !starts && !cuts {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.stage.load.Reached(percent):
		}
		if cuts {
			a.running.Line.Cut()
		}
		if starts {
			if err := a.start(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// start starts an informer. One that was running is stopped, and kept to be judged.
func (a *actor) start(ctx context.Context) error {
	if a.running != nil {
		a.running.Stop()
		a.stopped = append(a.stopped, a.running)
		a.running = nil
	}
	informer, err := observe.Start(a.stage.Config(), observe.Spec{
		Flavour:   a.part.flavour,
		Mode:      a.part.mode,
		Resource:  a.stage.resource,
		Namespace: a.stage.Namespace,
		Labels:    a.part.labels,
		Fields:    a.part.fields,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	a.running = informer
	return informer.Synced(ctx)
}

// judge says what the informers of the part did, and what was wrong with it.
func (a *actor) judge(ctx context.Context, told *history.History) (string, error) {
	if a.err != nil {
		return "play", a.err
	}
	selection := history.Selection{
		Labels: a.part.labels,
		Fields: a.part.fields,
		Parts:  a.part.flavour.Parts(),
	}
	want, err := told.Events(selection)
	if err != nil {
		return "select", err
	}
	if len(want) == 0 {
		return "select", errors.New("nothing of the load is selected: the check is worth nothing")
	}
	what := fmt.Sprintf("%d events of %d writes", len(want), told.Changes())
	live := 0
	for number, informer := range a.stopped {
		judged, err := informer.Judge(want, history.Stopped, a.stage.Replica())
		if err != nil {
			return what, fmt.Errorf("informer %d of %d: %w", number+1, len(a.stopped)+1, err)
		}
		live += judged.Live
	}
	judged, err := a.last(ctx, want)
	if err != nil {
		return what, err
	}
	how := "told in order"
	if a.stage.Replica() {
		how = "told as far as they were not replaced"
	}
	return fmt.Sprintf(
		"%s %s, %d live; %d informers, %d cuts, %d relisted; store of %d = list",
		what, how, live+judged.Live, len(a.stopped)+1, judged.Cuts, judged.Relisted, judged.Objects), nil
}

// last judges the informer that runs at the end.
func (a *actor) last(ctx context.Context, want []history.Event) (observe.Judged, error) {
	err := a.running.Reached(want, a.stage.patience)
	a.running.Stop()
	if err != nil {
		return observe.Judged{}, err
	}
	judged, err := a.running.Judge(want, history.TheEnd, a.stage.Replica())
	if err != nil {
		return observe.Judged{}, err
	}
	return judged, a.running.Agrees(ctx, a.stage.Witness(), a.stage.Replica())
}
