package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"holdfast.example/tests/clients/history"
)

// Contended is how many objects all writers write at once.
const Contended = 8

// Hot is one of the objects that everybody writes.
const Hot = "contended-0"

// ConfigMaps writes ConfigMaps into a namespace: half of the writers with a typed client, which
// speaks protobuf where it can, half with a dynamic one, which speaks JSON. It gives the version of
// the last write.
func (l *Load) ConfigMaps(
	ctx context.Context, config *rest.Config, namespace string,
) (history.Version, error) {
	var writers []writer
	var ports []port
	for number := range l.Plan.Writers {
		open := typedPort
		if number%2 == 1 {
			open = dynamicPort
		}
		port, err := open(config, namespace)
		if err != nil {
			return "", err
		}
		ports = append(ports, port)
		writers = append(writers, &configMaps{
			load:   l,
			port:   port,
			number: number,
			rand:   l.Plan.Rand(uint64(number)),
		})
	}
	for number := range Contended {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("contended-%d", number),
		}}
		mark(object, fmt.Sprintf("first-%d", number), number%Shards)
		made, err := ports[0].create(ctx, object)
		if err != nil {
			return "", fmt.Errorf("create %s: %w", object.Name, err)
		}
		if err := l.Log.Put(made); err != nil {
			return "", err
		}
	}
	return l.run(ctx, writers)
}

// configMaps writes objects of its own, whose state it knows, and the contended ones.
type configMaps struct {
	load   *Load
	port   port
	number int
	rand   *rand.Rand

	marks int
	made  int
	live  []*corev1.ConfigMap
	// gone are names that were deleted and may be used again.
	gone []string
}

func (w *configMaps) populate(ctx context.Context) error {
	return w.create(ctx)
}

func (w *configMaps) change(ctx context.Context) error {
	switch dice := w.rand.IntN(100); {
	case dice < 20:
		return w.contend(ctx)
	case dice < 32 || len(w.live) == 0:
		return w.create(ctx)
	case dice < 44:
		return w.remove(ctx)
	case dice < 72:
		return w.update(ctx)
	default:
		return w.patch(ctx)
	}
}

func (w *configMaps) finish(ctx context.Context) (history.Version, error) {
	if err := w.create(ctx); err != nil {
		return "", err
	}
	return history.Parse(w.live[len(w.live)-1].ResourceVersion)
}

// mark sets what makes a write different from all others.
func mark(object *corev1.ConfigMap, mark string, shard int) {
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Annotations[history.MarkAnnotation] = mark
	object.Labels[ShardLabel] = fmt.Sprint(shard)
	object.Data = map[string]string{"mark": mark, "fill": strings.Repeat(mark, 1+len(mark)*7%23)}
}

// next gives what the next write puts into an object.
func (w *configMaps) next() *corev1.ConfigMap {
	w.marks++
	next := &corev1.ConfigMap{}
	mark(next, fmt.Sprintf("w%d-%d", w.number, w.marks), w.rand.IntN(Shards))
	return next
}

// noted checks that an answer has what was sent, and notes it.
func (w *configMaps) noted(sent, got *corev1.ConfigMap) error {
	want := sent.Annotations[history.MarkAnnotation]
	if mark := got.Annotations[history.MarkAnnotation]; mark != want || got.Data["mark"] != want {
		return fmt.Errorf("%s was written with mark %s and answered with %s and %s",
			got.Name, want, mark, got.Data["mark"])
	}
	return w.load.Log.Put(got)
}

func (w *configMaps) create(ctx context.Context) error {
	object := w.next()
	if len(w.gone) > 0 && w.rand.IntN(2) == 0 {
		at := w.rand.IntN(len(w.gone))
		object.Name = w.gone[at]
		w.gone = append(w.gone[:at], w.gone[at+1:]...)
	} else {
		w.made++
		object.Name = fmt.Sprintf("w%d-%d", w.number, w.made)
	}
	made, err := w.port.create(ctx, object)
	if err != nil {
		return fmt.Errorf("create %s: %w", object.Name, err)
	}
	w.live = append(w.live, made)
	return w.noted(object, made)
}

// remove deletes an object, half of the time only if it is as it was last seen.
func (w *configMaps) remove(ctx context.Context) error {
	at := w.rand.IntN(len(w.live))
	object := w.live[at]
	w.live = append(w.live[:at], w.live[at+1:]...)
	w.gone = append(w.gone, object.Name)
	options := metav1.DeleteOptions{}
	if w.rand.IntN(2) == 0 {
		options.Preconditions = &metav1.Preconditions{
			UID:             &object.UID,
			ResourceVersion: &object.ResourceVersion,
		}
	}
	if err := w.port.delete(ctx, object.Name, options); err != nil {
		return fmt.Errorf("delete %s: %w", object.Name, err)
	}
	return w.load.Log.Delete(object)
}

// update replaces an object of its own; nobody else writes it, so that it cannot conflict.
func (w *configMaps) update(ctx context.Context) error {
	at := w.rand.IntN(len(w.live))
	object := w.next()
	object.Name, object.ResourceVersion = w.live[at].Name, w.live[at].ResourceVersion
	updated, err := w.port.update(ctx, object)
	if err != nil {
		return fmt.Errorf("update %s: %w", object.Name, err)
	}
	w.live[at] = updated
	return w.noted(object, updated)
}

func (w *configMaps) patch(ctx context.Context) error {
	at := w.rand.IntN(len(w.live))
	object := w.next()
	object.Name = w.live[at].Name
	patched, err := w.send(ctx, object)
	if err != nil {
		return err
	}
	w.live[at] = patched
	return w.noted(object, patched)
}

var patchTypes = []types.PatchType{
	types.MergePatchType, types.StrategicMergePatchType, types.JSONPatchType,
}

// send patches an object in one of three ways.
func (w *configMaps) send(
	ctx context.Context, object *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	kind := patchTypes[w.rand.IntN(len(patchTypes))]
	var patch any = map[string]any{
		"metadata": map[string]any{"annotations": object.Annotations, "labels": object.Labels},
		"data":     object.Data,
	}
	if kind == types.JSONPatchType {
		patch = []map[string]any{
			{"op": "replace", "path": "/metadata/annotations", "value": object.Annotations},
			{"op": "replace", "path": "/metadata/labels", "value": object.Labels},
			{"op": "replace", "path": "/data", "value": object.Data},
		}
	}
	bytes, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	patched, err := w.port.patch(ctx, object.Name, kind, bytes)
	if err != nil {
		return nil, fmt.Errorf("patch %s (%s): %w", object.Name, kind, err)
	}
	return patched, nil
}

// contend writes an object that the others write as well: with a patch, which always wins, or by
// reading and replacing it until nobody was in between.
func (w *configMaps) contend(ctx context.Context) error {
	object := w.next()
	object.Name = fmt.Sprintf("contended-%d", w.rand.IntN(Contended))
	if w.rand.IntN(2) == 0 {
		patched, err := w.send(ctx, object)
		if err != nil {
			return err
		}
		return w.noted(object, patched)
	}
	patient := wait.Backoff{Steps: 30, Duration: 2 * time.Millisecond, Factor: 1.3, Jitter: 0.5}
	return retry.OnError(patient, apierrors.IsConflict, func() error {
		current, err := w.port.get(ctx, object.Name)
		if err != nil {
			return fmt.Errorf("get %s: %w", object.Name, err)
		}
		object.ResourceVersion = current.ResourceVersion
		updated, err := w.port.update(ctx, object)
		if err != nil {
			return err
		}
		return w.noted(object, updated)
	})
}
