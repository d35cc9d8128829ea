package everyday

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const fromVersion = "from-version"

// until waits for things in the ways that client-go has for it, while somebody else makes them
// happen.
func until(ctx context.Context, p *place) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	ways := []struct {
		name string
		wait func(context.Context, *corev1.ConfigMap) error
	}{
		{"with-sync", p.untilWithSync},
		{fromVersion, p.untilFromVersion},
		{"poll", p.pollUntil},
	}
	for _, way := range ways {
		object, err := p.Client.CoreV1().ConfigMaps(p.Namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: way.name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		worked := make(chan error, 1)
		go func() { worked <- p.finish(ctx, way.name) }()
		err = way.wait(ctx, object)
		if other := <-worked; err == nil {
			err = other
		}
		p.Report(way.name, err, "saw the twentieth change, and then the deletion")
	}
	return nil
}

// finish changes an object twenty times, and deletes it.
func (p *place) finish(ctx context.Context, name string) error {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	for step := 1; step <= 20; step++ {
		patch := fmt.Sprintf(`{"data":{"step":"%d"}}`, step)
		_, err := objects.Patch(ctx, name, "application/merge-patch+json", []byte(patch),
			metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	// Who does not begin at a version must have a chance to see the last step: it is there until it
	// was seen.
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true,
		func(ctx context.Context) (bool, error) {
			object, err := objects.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return name == fromVersion || object.Labels["seen"] == "yes", nil
		})
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return objects.Delete(ctx, name, metav1.DeleteOptions{})
}

func (p *place) one(name string) *cache.ListWatch {
	return cache.NewListWatchFromClient(p.Client.CoreV1().RESTClient(), "configmaps", p.Namespace,
		fields.OneTermEqualSelector("metadata.name", name))
}

// twentieth is true for the last change.
func twentieth(event watch.Event) (bool, error) {
	object, ok := event.Object.(*corev1.ConfigMap)
	return ok && object.Data["step"] == "20", nil
}

func deleted(event watch.Event) (bool, error) {
	return event.Type == watch.Deleted, nil
}

func (p *place) untilWithSync(ctx context.Context, object *corev1.ConfigMap) error {
	noticed := func(event watch.Event) (bool, error) {
		there, err := twentieth(event)
		if there {
			err = p.notice(ctx, object.Name)
		}
		return there, err
	}
	_, err := watchtools.UntilWithSync(ctx, p.one(object.Name), &corev1.ConfigMap{}, nil,
		noticed, deleted)
	return err
}

// notice tells the other side that the last step was seen.
func (p *place) notice(ctx context.Context, name string) error {
	_, err := p.Client.CoreV1().ConfigMaps(p.Namespace).Patch(ctx, name,
		"application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"yes"}}}`),
		metav1.PatchOptions{})
	return err
}

func (p *place) untilFromVersion(ctx context.Context, object *corev1.ConfigMap) error {
	last, err := watchtools.Until(ctx, object.ResourceVersion, p.one(object.Name), twentieth, deleted)
	if err != nil {
		return err
	}
	if meta, ok := last.Object.(*corev1.ConfigMap); !ok || meta.UID != object.UID {
		return errors.New("the deletion is of another object")
	}
	return nil
}

func (p *place) pollUntil(ctx context.Context, object *corev1.ConfigMap) error {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	get := func(ctx context.Context) (*corev1.ConfigMap, error) {
		return objects.Get(ctx, object.Name, metav1.GetOptions{})
	}
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true,
		func(ctx context.Context) (bool, error) {
			object, err := get(ctx)
			return err == nil && object.Data["step"] == "20", err
		})
	if err != nil {
		return err
	}
	if err := p.notice(ctx, object.Name); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true,
		func(ctx context.Context) (bool, error) {
			_, err := get(ctx)
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
}
