package load

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"holdfast.example/tests/clients/history"
)

// serviceNames is how many names each writer of services has: few, so that they are used again and
// again.
const serviceNames = 24

// Services writes services into a namespace: makes, changes and deletes them, and makes others of
// the same names. It gives the version of the last write.
func (l *Load) Services(
	ctx context.Context, config *rest.Config, namespace string,
) (history.Version, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("typed client: %w", err)
	}
	var writers []writer
	for number := range l.Plan.Writers {
		writers = append(writers, &services{
			load:   l,
			client: client.CoreV1().Services(namespace),
			number: number,
			rand:   l.Plan.Rand(uint64(number)),
			live:   map[string]*corev1.Service{},
		})
	}
	return l.run(ctx, writers)
}

type services struct {
	load   *Load
	client typedv1.ServiceInterface
	number int
	rand   *rand.Rand

	marks int
	live  map[string]*corev1.Service
}

func (w *services) populate(ctx context.Context) error {
	return w.change(ctx)
}

// change makes a service, or changes or deletes the one that has the name.
func (w *services) change(ctx context.Context) error {
	name := fmt.Sprintf("w%d-%d", w.number, w.rand.IntN(serviceNames))
	there, has := w.live[name]
	switch {
	case !has:
		return w.create(ctx, name)
	case w.rand.IntN(3) == 0:
		delete(w.live, name)
		if err := w.client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		return w.load.Log.Delete(there)
	}
	changed := there.DeepCopy()
	w.mark(changed)
	updated, err := w.client.Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	w.live[name] = updated
	return w.load.Log.Put(updated)
}

func (w *services) finish(ctx context.Context) (history.Version, error) {
	if err := w.create(ctx, "last"); err != nil {
		return "", err
	}
	return history.Parse(w.live["last"].ResourceVersion)
}

func (w *services) create(ctx context.Context, name string) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName},
	}
	w.mark(service)
	made, err := w.client.Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	w.live[name] = made
	return w.load.Log.Put(made)
}

// mark sets what makes a write different from all others.
func (w *services) mark(service *corev1.Service) {
	w.marks++
	mark := fmt.Sprintf("w%d-%d", w.number, w.marks)
	service.Labels = map[string]string{ShardLabel: fmt.Sprint(w.rand.IntN(Shards))}
	service.Annotations = map[string]string{history.MarkAnnotation: mark}
	service.Spec.ExternalName = mark + ".example.test"
}
