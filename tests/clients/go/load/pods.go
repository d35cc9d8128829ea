package load

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"holdfast.example/tests/clients/history"
)

// Nodes is how many node names pods are made for.
const Nodes = 3

// NodeName is the name of a node that need not be there.
func NodeName(number int) string {
	return fmt.Sprintf("node-%d", number)
}

// Pods writes pods into a namespace: makes them, some of them for a node, reports their phase,
// and deletes them, so that they enter and leave field selectors. It gives the version of the last
// write.
func (l *Load) Pods(
	ctx context.Context, config *rest.Config, namespace string,
) (history.Version, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("typed client: %w", err)
	}
	var writers []writer
	for number := range l.Plan.Writers {
		writers = append(writers, &pods{
			load:   l,
			client: client.CoreV1().Pods(namespace),
			number: number,
			rand:   l.Plan.Rand(uint64(number)),
		})
	}
	return l.run(ctx, writers)
}

type pods struct {
	load   *Load
	client typedv1.PodInterface
	number int
	rand   *rand.Rand

	made, marks int
	live        []*corev1.Pod
}

func (w *pods) populate(ctx context.Context) error {
	return w.create(ctx)
}

func (w *pods) change(ctx context.Context) error {
	if len(w.live) == 0 {
		return w.create(ctx)
	}
	at := w.rand.IntN(len(w.live))
	switch dice := w.rand.IntN(100); {
	case dice < 20:
		return w.create(ctx)
	case dice < 40:
		return w.remove(ctx, at)
	default:
		return w.report(ctx, at)
	}
}

func (w *pods) finish(ctx context.Context) (history.Version, error) {
	if err := w.create(ctx); err != nil {
		return "", err
	}
	return history.Parse(w.live[len(w.live)-1].ResourceVersion)
}

func (w *pods) create(ctx context.Context) error {
	w.made++
	never := false
	node := ""
	if w.rand.IntN(4) > 0 {
		node = NodeName(w.rand.IntN(Nodes))
	}
	pod, err := w.client.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("w%d-%d", w.number, w.made),
			Labels:      map[string]string{ShardLabel: fmt.Sprint(w.rand.IntN(Shards))},
			Annotations: map[string]string{history.MarkAnnotation: fmt.Sprintf("w%d-%d", w.number, w.made)},
		},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{{Name: "a", Image: "image.example/a"}},
			AutomountServiceAccountToken: &never,
			NodeName:                     node,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	w.live = append(w.live, pod)
	return w.load.Log.Put(pod)
}

// report does what a kubelet does: it replaces the status, or patches it.
func (w *pods) report(ctx context.Context, at int) error {
	w.marks++
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}
	phase := phases[w.rand.IntN(len(phases))]
	message := fmt.Sprintf("w%d-%d", w.number, w.marks)
	var reported *corev1.Pod
	var err error
	if w.rand.IntN(2) == 0 {
		pod := w.live[at].DeepCopy()
		pod.Status.Phase, pod.Status.Message = phase, message
		reported, err = w.client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	} else {
		patch := fmt.Sprintf(`{"status":{"phase":%q,"message":%q}}`, phase, message)
		reported, err = w.client.Patch(ctx, w.live[at].Name, types.StrategicMergePatchType,
			[]byte(patch), metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("report of %s: %w", w.live[at].Name, err)
	}
	if reported.Status.Message != message || reported.Status.Phase != phase {
		return fmt.Errorf("%s was reported to be %s (%s) and answered as %s (%s)", reported.Name,
			phase, message, reported.Status.Phase, reported.Status.Message)
	}
	w.live[at] = reported
	return w.load.Log.Put(reported)
}

func (w *pods) remove(ctx context.Context, at int) error {
	pod := w.live[at]
	w.live = append(w.live[:at], w.live[at+1:]...)
	now := int64(0)
	err := w.client.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		return fmt.Errorf("delete %s: %w", pod.Name, err)
	}
	return w.load.Log.Delete(pod)
}
