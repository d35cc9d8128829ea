package everyday

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

const (
	contenders = 16
	turns      = 5
)

// contention has many write one object at the same time.
func contention(ctx context.Context, p *place) error {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	_, err := objects.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "wanted"},
		Data:       map[string]string{"count": "0"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	conflicts, err := p.increments(ctx)
	p.Report("retry-on-conflict", err, "%d increments by %d clients add up; %d conflicts on the way",
		contenders*turns, contenders, conflicts)
	err = p.patches(ctx)
	p.Report("patches", err, "%d patches without a version by %d clients all went through",
		contenders*turns, contenders)
	return nil
}

// all does something at the same time, as many times as there are contenders.
func all(do func(number int) error) error {
	faults := make([]error, contenders)
	var working sync.WaitGroup
	for number := range contenders {
		working.Go(func() { faults[number] = do(number) })
	}
	working.Wait()
	return errors.Join(faults...)
}

// increments count up: a lost update would be seen in the sum.
func (p *place) increments(ctx context.Context) (int64, error) {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	patient := wait.Backoff{Steps: 60, Duration: 5 * time.Millisecond, Factor: 1.1, Jitter: 1}
	var conflicts atomic.Int64
	err := all(func(int) error {
		for range turns {
			err := retry.RetryOnConflict(patient, func() error {
				object, err := objects.Get(ctx, "wanted", metav1.GetOptions{})
				if err != nil {
					return err
				}
				count, err := strconv.Atoi(object.Data["count"])
				if err != nil {
					return err
				}
				object.Data["count"] = strconv.Itoa(count + 1)
				_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
				if apierrors.IsConflict(err) {
					conflicts.Add(1)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return conflicts.Load(), err
	}
	object, err := objects.Get(ctx, "wanted", metav1.GetOptions{})
	if err != nil {
		return conflicts.Load(), err
	}
	if want := strconv.Itoa(contenders * turns); object.Data["count"] != want {
		return conflicts.Load(), fmt.Errorf("the count is %s, not %s", object.Data["count"], want)
	}
	return conflicts.Load(), nil
}

// patches have no version: each is applied to whatever is there, and none is told of a conflict.
func (p *place) patches(ctx context.Context) error {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	err := all(func(number int) error {
		for turn := range turns {
			patch := fmt.Sprintf(`{"data":{"by-%d-%d":"x"}}`, number, turn)
			_, err := objects.Patch(ctx, "wanted", "application/merge-patch+json", []byte(patch),
				metav1.PatchOptions{})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	object, err := objects.Get(ctx, "wanted", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got, want := len(object.Data), contenders*turns+1; got != want {
		return fmt.Errorf("%d keys, not %d", got, want)
	}
	return nil
}

// names has the server make names, and takes all away at once.
func names(ctx context.Context, p *place) error {
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	var mutex sync.Mutex
	seen := map[string]bool{}
	err := all(func(int) error {
		for range turns {
			made, err := objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "made-", Labels: map[string]string{"made": "yes"},
			}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			mutex.Lock()
			seen[made.Name] = true
			mutex.Unlock()
		}
		return nil
	})
	if err == nil && len(seen) != contenders*turns {
		err = fmt.Errorf("%d names for %d objects", len(seen), contenders*turns)
	}
	p.Report("generated", err, "%d objects, each with a name of its own", len(seen))
	selected := metav1.ListOptions{LabelSelector: "made=yes"}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := objects.DeleteCollection(ctx, dry, selected); err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	left, err := objects.List(ctx, selected)
	if err == nil && len(left.Items) != len(seen) {
		err = fmt.Errorf("a dry run left %d of %d", len(left.Items), len(seen))
	}
	p.Report("dry-run", err, "deletes nothing")
	if err := objects.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	left, err = objects.List(ctx, selected)
	if err == nil && len(left.Items) != 0 {
		err = fmt.Errorf("%d are left", len(left.Items))
	}
	p.Report("delete-collection", err, "took all of them")
	return nil
}
