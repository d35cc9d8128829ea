package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.example/tests/clients/check"
)

const (
	users       = 6
	widgetsEach = 50
)

// wish is what a user wants of a widget.
type wish struct {
	spec WidgetSpec
	// specs counts how often the spec was another one: so often the generation rises.
	specs int64
	gone  bool
}

// driver has users do things, and knows what must come of it.
type driver struct {
	run       *check.Run
	client    client.Client
	namespace string

	mutex  sync.Mutex
	want   map[string]*wish
	writes atomic.Int64
}

type user struct {
	*driver
	number int
	rand   *rand.Rand
}

// work makes widgets in the first phase; in each it changes, deletes, and meddles with what is the
// controller's.
func (u *user) work(ctx context.Context, phase int) error {
	for number := range widgetsEach {
		name := fmt.Sprintf("w%d-%d", u.number, number)
		if phase == 0 {
			if err := u.create(ctx, name); err != nil {
				return err
			}
		}
		if u.wish(name).gone {
			continue
		}
		var err error
		switch u.rand.IntN(6) {
		case 0, 1:
			err = u.change(ctx, name)
		case 2:
			err = u.meddle(ctx, name)
		case 3:
			if phase > 0 {
				err = u.remove(ctx, name)
			}
		}
		if err != nil {
			return fmt.Errorf("%s in phase %d: %w", name, phase, err)
		}
	}
	return nil
}

func (u *user) wish(name string) *wish {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.want[name] == nil {
		u.want[name] = &wish{}
	}
	return u.want[name]
}

func (u *user) create(ctx context.Context, name string) error {
	widget := &Widget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: u.namespace},
		Spec:       WidgetSpec{Text: fmt.Sprintf("%s-first ", name)},
	}
	if u.number%2 == 0 {
		widget.Spec.Repeat = 1 + u.rand.IntN(4)
	}
	if err := u.client.Create(ctx, widget); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if widget.Spec.Repeat == 0 {
		return errors.New("the default was not filled in")
	}
	wish := u.wish(name)
	wish.spec, wish.specs = widget.Spec, 1
	u.writes.Add(1)
	return nil
}

// change changes the spec as users do: read, change, write, and again if somebody was faster.
func (u *user) change(ctx context.Context, name string) error {
	wish := u.wish(name)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var widget Widget
		key := client.ObjectKey{Namespace: u.namespace, Name: name}
		if err := u.client.Get(ctx, key, &widget); err != nil {
			return err
		}
		widget.Spec.Text = fmt.Sprintf("%s-%d ", name, wish.specs+1)
		if err := u.client.Update(ctx, &widget); err != nil {
			return err
		}
		wish.spec = widget.Spec
		wish.specs++
		u.writes.Add(1)
		return nil
	})
}

// meddle deletes or changes the ConfigMap of a widget. The controller has to notice; where it has
// not made it yet, there is nothing to meddle with.
func (u *user) meddle(ctx context.Context, name string) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: configName(name), Namespace: u.namespace,
	}}
	var err error
	if u.rand.IntN(2) == 0 {
		err = u.client.Delete(ctx, config)
	} else {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"text":"no"}}`))
		err = u.client.Patch(ctx, config, patch)
	}
	return client.IgnoreNotFound(err)
}

func (u *user) remove(ctx context.Context, name string) error {
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: u.namespace}}
	if err := u.client.Delete(ctx, widget); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	u.wish(name).gone = true
	return nil
}

// count says how many widgets must be there, and how many are gone.
func (d *driver) count() (live, gone int) {
	for _, wish := range d.want {
		if wish.gone {
			gone++
		} else {
			live++
		}
	}
	return live, gone
}

// compare says what is not as it should be.
func (d *driver) compare(ctx context.Context) error {
	live, gone := d.count()
	if gone == 0 {
		return errors.New("nothing was deleted: the check is worth nothing")
	}
	var widgets WidgetList
	if err := d.client.List(ctx, &widgets, client.InNamespace(d.namespace)); err != nil {
		return fmt.Errorf("list widgets: %w", err)
	}
	if len(widgets.Items) != live {
		return fmt.Errorf("there are %d widgets; there should be %d", len(widgets.Items), live)
	}
	var configs corev1.ConfigMapList
	if err := d.client.List(ctx, &configs, client.InNamespace(d.namespace)); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	owned := map[string]*corev1.ConfigMap{}
	for at := range configs.Items {
		if metav1.GetControllerOf(&configs.Items[at]) != nil {
			owned[configs.Items[at].Name] = &configs.Items[at]
		}
	}
	if len(owned) != live {
		return fmt.Errorf("there are %d ConfigMaps of widgets; there should be %d", len(owned), live)
	}
	for at := range widgets.Items {
		widget := &widgets.Items[at]
		if err := d.settled(widget, owned[configName(widget.Name)]); err != nil {
			return fmt.Errorf("widget %s: %w", widget.Name, err)
		}
	}
	return nil
}

func (d *driver) settled(widget *Widget, config *corev1.ConfigMap) error {
	wish := d.want[widget.Name]
	status := WidgetStatus{ObservedGeneration: wish.specs, Written: wanted(widget)}
	switch {
	case widget.Spec != wish.spec:
		return fmt.Errorf("spec %+v; it should be %+v", widget.Spec, wish.spec)
	case widget.Generation != wish.specs:
		return fmt.Errorf("generation %d; the spec was written %d times", widget.Generation, wish.specs)
	case widget.Status != status:
		return fmt.Errorf("status %+v; it should be %+v", widget.Status, status)
	case !controllerutil.ContainsFinalizer(widget, finalizer):
		return errors.New("no finalizer")
	case config == nil:
		return errors.New("no ConfigMap")
	case config.Data["text"] != wanted(widget):
		return fmt.Errorf("ConfigMap says %q", config.Data["text"])
	case !metav1.IsControlledBy(config, widget):
		return fmt.Errorf("the ConfigMap belongs to %v", metav1.GetControllerOf(config))
	}
	return nil
}
