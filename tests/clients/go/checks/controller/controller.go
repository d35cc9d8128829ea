// Package controller checks that a controller on controller-runtime does its work: a custom kind, a
// cache, owned objects, a status, a finalizer, leader election, and a restart in the middle.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.example/tests/clients/check"
)

// patience is how long the controller may take until everything is as it should be.
const patience = 2 * time.Minute

// Check is the check.
var Check = check.Check{Name: "controller", Run: check.Placed(run)}

func run(ctx context.Context, place *check.Place) error {
	// The namespace's name is nobody else's, so that the group is not either.
	group := place.Namespace + ".holdfast.example"
	undefine, err := define(ctx, place.Config(), group)
	if undefine != nil {
		defer func() {
			if err := undefine(); err != nil {
				place.Report("cleanup", err, "remove the definition of widgets")
			}
		}()
	}
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgo.AddToScheme(scheme); err != nil {
		return fmt.Errorf("scheme: %w", err)
	}
	register(scheme, group)
	plain, err := client.New(place.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	d := &driver{run: place.Run, client: plain, namespace: place.Namespace, want: map[string]*wish{}}
	return d.drive(ctx, scheme)
}

// drive has users do their work while the controller does its own, and is restarted once.
func (d *driver) drive(ctx context.Context, scheme *runtime.Scheme) error {
	first, err := d.start(ctx, scheme)
	if err != nil {
		return err
	}
	if err := d.users(ctx, 0); err != nil {
		return err
	}
	// It is stopped in the middle of its work, but not before it has begun: client-go's reflectors
	// cannot be stopped while they wait for a server that is not ready for a new kind.
	if err := first.began(ctx); err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return fmt.Errorf("first manager: %w", err)
	}
	// What happens while no controller runs is for the next one to find.
	if err := d.users(ctx, 1); err != nil {
		return err
	}
	second, err := d.start(ctx, scheme)
	if err != nil {
		return err
	}
	if err := d.users(ctx, 2); err != nil {
		return err
	}
	err = d.converged(ctx)
	live, gone := d.count()
	d.run.Report("end-state", err,
		"%d widgets with ConfigMap, status and finalizer, %d gone with theirs; %d spec writes, %d rounds",
		live, gone, d.writes.Load(), first.reconciler.rounds.Load()+second.reconciler.rounds.Load())
	if err := second.stop(); err != nil {
		return fmt.Errorf("second manager: %w", err)
	}
	return nil
}

// program is a manager that runs.
type program struct {
	reconciler *reconciler
	cancel     context.CancelFunc
	done       chan error
}

func (d *driver) start(ctx context.Context, scheme *runtime.Scheme) (*program, error) {
	manager, reconciler, err := manager(d.run.Config(), scheme, d.namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &program{reconciler: reconciler, cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- manager.Start(ctx) }()
	return p, nil
}

// began waits until the controller has done some work.
func (p *program) began(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return p.reconciler.rounds.Load() >= 50, nil })
	if err != nil {
		return fmt.Errorf("the controller has done %d rounds: %w", p.reconciler.rounds.Load(), err)
	}
	return nil
}

func (p *program) stop() error {
	p.cancel()
	return <-p.done
}

// converged waits until everything is as it should be, and says what is not.
func (d *driver) converged(ctx context.Context) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			missing = d.compare(ctx)
			return missing == nil, nil
		})
	if err != nil {
		return fmt.Errorf("after %s: %w", patience, missing)
	}
	return nil
}

// users work at the same time, each on widgets of its own.
func (d *driver) users(ctx context.Context, phase int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for number := range users {
		working.Go(func() {
			user := user{driver: d, number: number, rand: d.run.Rand(uint64(200 + 10*phase + number))}
			if err := user.work(ctx, phase); err != nil {
				cancel(fmt.Errorf("user %d: %w", number, err))
			}
		})
	}
	working.Wait()
	return context.Cause(ctx)
}
