// Package expiry checks what happens when a server no longer has the history that a client asks
// for: each way to ask is refused with 410, and informers recover from it.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"holdfast.example/tests/clients/check"
	"holdfast.example/tests/clients/follow"
	"holdfast.example/tests/clients/history"
)

// patience is how long what must come may take. It is only waited for where something is wrong.
const patience = 60 * time.Second

// pushMax is how many writes of pushBytes may be needed until a version that is old enough is gone.
// Servers keep history by count, by bytes or both; kube-apiserver at least 100 events of a resource
// and everything younger than 75 seconds, which is why the check waits first.
const (
	pushMax   = 400
	pushBytes = 700 * 1024
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// Check is the check. It has secrets for itself: a history is one of a whole resource, so that
// others who write the same would decide how much of it is kept.
var Check = check.Check{Name: "expiry", Run: check.Placed(run)}

func run(ctx context.Context, place *check.Place) error {
	e := &expiry{
		Place:   place,
		secrets: place.Client.CoreV1().Secrets(place.Namespace),
		held:    map[string]*corev1.Secret{},
	}
	return e.play(ctx)
}

// expiry is one run of the check.
type expiry struct {
	*check.Place
	secrets typedv1.SecretInterface

	log   history.Log
	held  map[string]*corev1.Secret
	marks int
	// first is the version that expires, token one of a list at it whose first page had the names
	// in page, and changed the object whose write is the first one after it.
	first   string
	token   string
	page    []string
	changed string
}

func (e *expiry) play(ctx context.Context) error {
	before, err := e.secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	source, err := kubernetes.NewForConfig(e.Witness())
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	witness := follow.Start(ctx, follow.Plan{
		Open:    source.CoreV1().Secrets(e.Namespace).Watch,
		Options: metav1.ListOptions{ResourceVersion: before.ResourceVersion},
	})
	if err := e.populate(ctx); err != nil {
		return err
	}
	away, err := e.startAway(ctx)
	if err != nil {
		return err
	}
	// A watch that told nothing is not taken up again but replaced by a list; each tells something.
	if err := e.push(ctx); err != nil {
		return err
	}
	if err := away.reached(); err != nil {
		return err
	}
	// From here on they are cut off, and learn of nothing.
	away.down()
	if err := e.remember(ctx); err != nil {
		return err
	}
	if err := e.changeMeanwhile(ctx); err != nil {
		return err
	}
	pushed, err := e.expire(ctx)
	if err != nil {
		return err
	}
	e.Report("pushed-out", nil, "version %s was refused after %s and %d writes of %d KiB",
		e.first, e.HistoryMax, pushed, pushBytes/1024)
	e.refusals(ctx)
	away.up()
	last, err := e.changeAfterwards(ctx)
	if err != nil {
		return err
	}
	seen, err := witness.Finish(last, patience)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	told, err := e.log.Order(seen.Events)
	if err != nil {
		return fmt.Errorf("the writes have no order: %w", err)
	}
	away.judge(ctx, told)
	return nil
}

// remember takes the version that is to expire, and a token of a list at it.
func (e *expiry) remember(ctx context.Context) error {
	page, err := e.secrets.List(ctx, metav1.ListOptions{Limit: 5})
	if err != nil {
		return fmt.Errorf("first page: %w", err)
	}
	if page.Continue == "" || len(page.Items) != 5 {
		return fmt.Errorf("a page of 5 has %d objects and the token %q", len(page.Items), page.Continue)
	}
	e.first, e.token = page.ResourceVersion, page.Continue
	for _, secret := range page.Items {
		e.page = append(e.page, secret.Name)
	}
	return nil
}

// expire waits until the first version is old, and writes until it is refused.
func (e *expiry) expire(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(e.HistoryMax):
	}
	for pushed := range pushMax {
		event, err := e.peek(ctx, e.secrets.Watch)
		switch {
		case apierrors.IsResourceExpired(err):
			return pushed, nil
		case err != nil:
			return 0, fmt.Errorf("watch from version %s: %w", e.first, err)
		case event.Name != e.changed:
			return 0, fmt.Errorf("a watch from version %s begins with %v; the first write was of %s",
				e.first, event, e.changed)
		}
		if err := e.push(ctx); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("version %s is still served after %s and %d writes of %d KiB",
		e.first, e.HistoryMax, pushMax, pushBytes/1024)
}

// peek gives the first event of a watch from the first version. Something was written after it, so
// that there is one, or a refusal.
func (e *expiry) peek(ctx context.Context, open follow.Open) (history.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := open(ctx, metav1.ListOptions{
		ResourceVersion: e.first,
		FieldSelector:   "metadata.name=" + e.changed,
	})
	if err != nil {
		return history.Event{}, err
	}
	defer stream.Stop()
	event, more := <-stream.ResultChan()
	switch {
	case !more:
		return history.Event{}, errors.New("it ended without a word")
	case event.Type == watch.Error:
		return history.Event{}, apierrors.FromObject(event.Object)
	}
	return history.EventOf(event)
}
