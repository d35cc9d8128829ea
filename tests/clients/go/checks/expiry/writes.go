package expiry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.example/tests/clients/history"
)

const (
	objects = 24
	large   = "large"
)

func small(number int) string {
	return fmt.Sprintf("small-%02d", number)
}

// write makes or replaces a secret, and notes it.
func (e *expiry) write(ctx context.Context, name string, fill []byte) error {
	e.marks++
	mark := fmt.Sprint("mark-", e.marks)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{history.MarkAnnotation: mark},
		},
		Data: map[string][]byte{"mark": []byte(mark), "fill": fill},
	}
	var err error
	if held, there := e.held[name]; there {
		secret.ResourceVersion = held.ResourceVersion
		secret, err = e.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	} else {
		secret, err = e.secrets.Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	e.held[name] = secret
	return e.log.Put(secret)
}

func (e *expiry) remove(ctx context.Context, name string) error {
	if err := e.secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	secret := e.held[name]
	delete(e.held, name)
	return e.log.Delete(secret)
}

func (e *expiry) populate(ctx context.Context) error {
	for number := range objects {
		if err := e.write(ctx, small(number), nil); err != nil {
			return err
		}
	}
	return e.push(ctx)
}

// push writes much.
func (e *expiry) push(ctx context.Context) error {
	fill := make([]byte, pushBytes)
	for at := range fill {
		fill[at] = byte(at*7 + e.marks)
	}
	return e.write(ctx, large, fill)
}

// changeMeanwhile does everything that a client which is away can miss: changes, deletions,
// deletions with another object of the same name after them, new objects, and new ones that went
// again.
func (e *expiry) changeMeanwhile(ctx context.Context) error {
	e.changed = small(0)
	for number := range objects {
		name := small(number)
		var err error
		switch number % 4 {
		case 0:
			err = e.write(ctx, name, nil)
		case 1:
			err = e.remove(ctx, name)
		case 2:
			if err = e.remove(ctx, name); err == nil {
				err = e.write(ctx, name, nil)
			}
		}
		if err != nil {
			return err
		}
	}
	for number := range 3 {
		if err := e.write(ctx, fmt.Sprintf("new-%d", number), nil); err != nil {
			return err
		}
		passing := fmt.Sprintf("passing-%d", number)
		if err := e.write(ctx, passing, nil); err != nil {
			return err
		}
		if err := e.remove(ctx, passing); err != nil {
			return err
		}
	}
	return nil
}

// changeAfterwards is for those who are back to see. It gives the version of the last write.
func (e *expiry) changeAfterwards(ctx context.Context) (history.Version, error) {
	for _, name := range []string{small(3), "after", small(4)} {
		if err := e.write(ctx, name, nil); err != nil {
			return "", err
		}
	}
	if err := e.remove(ctx, small(8)); err != nil {
		return "", err
	}
	if err := e.write(ctx, "last", nil); err != nil {
		return "", err
	}
	return history.Parse(e.held["last"].ResourceVersion)
}
