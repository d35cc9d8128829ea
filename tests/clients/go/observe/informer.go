// Package observe runs client-go's informers and judges what they told their handlers.
package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"holdfast.example/tests/clients/history"
	"holdfast.example/tests/clients/line"
)

// Spec says what an informer is of.
type Spec struct {
	Flavour   Flavour
	Mode      Mode
	Resource  schema.GroupVersionResource
	Namespace string
	Labels    string
	Fields    string
}

// Selection is what a watch of the same would select.
func (s Spec) Selection() history.Selection {
	return history.Selection{Labels: s.Labels, Fields: s.Fields, Parts: s.Flavour.Parts()}
}

// Informer is an informer that runs on a line of its own.
type Informer struct {
	Line line.Line

	spec     Spec
	source   *source
	recorder *recorder
	stop     chan struct{}
}

// Start starts an informer. It has its first state when Synced says so.
func Start(config *rest.Config, spec Spec) (*Informer, error) {
	informer := &Informer{spec: spec, recorder: newRecorder(), stop: make(chan struct{})}
	var err error
	informer.source, err = open(informer.Line.Config(config), spec)
	if err != nil {
		return nil, err
	}
	if _, err := informer.source.informer.AddEventHandler(informer.recorder); err != nil {
		return nil, fmt.Errorf("add the handler: %w", err)
	}
	informer.source.start(informer.stop)
	return informer, nil
}

// Synced waits for the first state.
func (i *Informer) Synced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), i.source.informer.HasSynced) {
		return fmt.Errorf("never synced: %w", context.Cause(ctx))
	}
	return nil
}

// Stop stops it, and returns when it has ended. It tells nothing any more.
func (i *Informer) Stop() {
	close(i.stop)
	i.source.shutdown()
}

// Reached waits until what the handler was told adds up to these events, of which there is one.
func (i *Informer) Reached(want []history.Event, patience time.Duration) error {
	return i.recorder.wait(want, patience)
}

// Judged is what an informer was found to have done.
type Judged struct {
	history.Told
	// Objects are in its store at the end.
	Objects int
	// Cuts is how often its connection was cut.
	Cuts int
}

// Judge checks what it told its handler against the events of its selection. A replica may leave out
// what was replaced.
func (i *Informer) Judge(
	want []history.Event, until history.Until, replica bool,
) (Judged, error) {
	notices, faults := i.recorder.record()
	if err := errors.Join(faults...); err != nil {
		return Judged{}, err
	}
	relists, err := i.relists()
	if err != nil {
		return Judged{}, err
	}
	var told history.Told
	if replica {
		account := history.Account{Notices: notices, Relists: relists}
		told, err = history.Followed(want, account, until)
	} else {
		told, err = history.Faithful(want, notices, relists, until)
	}
	if err != nil {
		return Judged{}, err
	}
	objects := len(i.source.informer.GetStore().ListKeys())
	return Judged{told, objects, i.Line.Cuts()}, nil
}

// relists says how often it took a whole state after the first, and checks that it did so in its
// own way: client-go falls back to lists where streaming fails, and says so only in its log.
func (i *Informer) relists() (int, error) {
	lists, streams := i.Line.Count(line.List), i.Line.Count(line.Stream)
	switch {
	case i.spec.Mode == Streaming && lists > 0:
		return 0, fmt.Errorf("a streaming informer listed %d times", lists)
	case i.spec.Mode == Listing && streams > 0:
		return 0, fmt.Errorf("a listing informer streamed %d times", streams)
	case lists+streams == 0:
		return 0, errors.New("the server was never asked for its state")
	}
	return lists + streams - 1, nil
}

// Agrees checks that its store is what a fresh list is: the same objects, at the same versions,
// with the same content in full. The list goes over another line. A replica need not have who wrote
// which field.
func (i *Informer) Agrees(ctx context.Context, config *rest.Config, replica bool) error {
	fresh, err := open(config, i.spec)
	if err != nil {
		return err
	}
	list, err := fresh.list(ctx, metav1.ListOptions{
		LabelSelector: i.spec.Labels,
		FieldSelector: i.spec.Fields,
	})
	if err != nil {
		return fmt.Errorf("fresh list: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("fresh list: %w", err)
	}
	store := i.source.informer.GetStore()
	for _, item := range items {
		if err := sameInStore(store, item, replica); err != nil {
			return err
		}
	}
	if held := len(store.ListKeys()); held != len(items) {
		return fmt.Errorf("the store has %d objects, a fresh list %d", held, len(items))
	}
	return nil
}

func sameInStore(store cache.Store, item runtime.Object, replica bool) error {
	held, there, err := store.Get(item)
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	key, err := cache.MetaNamespaceKeyFunc(item)
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	if !there {
		return fmt.Errorf("%s is listed and not in the store", key)
	}
	if !apiequality.Semantic.DeepEqual(plain(held, replica), plain(item, replica)) {
		return fmt.Errorf("%s is in the store as %s and listed as %s", key, shown(held), shown(item))
	}
	return nil
}

// plain leaves out kind and apiVersion, which client-go fills in on some ways and not on others, and
// of a replica who wrote which field.
func plain(object any, replica bool) any {
	whole, ok := object.(runtime.Object)
	if !ok {
		return object
	}
	plain := whole.DeepCopyObject()
	plain.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if held, ok := plain.(metav1.Object); ok && replica {
		held.SetManagedFields(nil)
	}
	return plain
}

// shown is an object as people read it.
func shown(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Sprintf("%+v", object)
	}
	return string(text)
}
