package election

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"holdfast.example/tests/clients/line"
)

// candidate is a program that wants to lead.
type candidate struct {
	name    string
	release bool
	line    line.Line
	terms   *terms
	cancel  context.CancelFunc
	done    chan struct{}
}

// start starts a candidate. It ends when it is stopped, or has led and lost the lease.
func start(ctx context.Context, e *election, name string, release bool) (*candidate, error) {
	c := &candidate{name: name, release: release, terms: e.terms, done: make(chan struct{})}
	client, err := kubernetes.NewForConfig(c.line.Config(e.Config()))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: leaseName, Namespace: e.Namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { c.terms.begin(name) },
			// Also called where it never led.
			OnStoppedLeading: func() { c.terms.end(name) },
		},
	})
	if err != nil {
		return nil, fmt.Errorf("elector: %w", err)
	}
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		elector.Run(ctx)
	}()
	return c, nil
}

// stop ends it as a program ends that is asked to: its work is over when its context is, and only
// then the lease may be given up. It says whether it led until then.
func (c *candidate) stop() bool {
	led := c.terms.end(c.name)
	c.cancel()
	<-c.done
	return led
}

func (c *candidate) leads() bool {
	return c.terms.leads(c.name)
}

func (c *candidate) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// term is a time in which somebody led.
type term struct {
	who         string
	began, over time.Time
}

// terms are all of them.
type terms struct {
	mutex sync.Mutex
	list  []term
	told  chan struct{}
}

// changed is closed with the next change.
func (t *terms) changed() <-chan struct{} {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.told == nil {
		t.told = make(chan struct{})
	}
	return t.told
}

func (t *terms) tell() {
	if t.told != nil {
		close(t.told)
		t.told = nil
	}
}

func (t *terms) begin(who string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.list = append(t.list, term{who: who, began: time.Now()})
	t.tell()
}

// end ends a term if there is one that lasts, and says whether there was.
func (t *terms) end(who string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	lasted := false
	for at := range t.list {
		if t.list[at].who == who && t.list[at].over.IsZero() {
			t.list[at].over = time.Now()
			lasted = true
			t.tell()
		}
	}
	return lasted
}

// leads says whether a term of his lasts.
func (t *terms) leads(who string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, term := range t.list {
		if term.who == who && term.over.IsZero() {
			return true
		}
	}
	return false
}

func (t *terms) all() []term {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return append([]term(nil), t.list...)
}
