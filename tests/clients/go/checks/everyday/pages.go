package everyday

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const (
	pagedObjects = 600
	pageSize     = 110
)

// pages lists in pages while others write: all pages are of one moment.
func pages(ctx context.Context, p *place) error {
	before, err := p.fill(ctx)
	if err != nil {
		return err
	}
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	count := 0
	pages := pager.New(func(
		ctx context.Context, options metav1.ListOptions,
	) (runtime.Object, error) {
		count++
		return objects.List(ctx, options)
	})
	pages.PageSize = pageSize
	pages.PageBufferSize = 0
	var listed []string
	err = pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "paged"},
		func(item runtime.Object) error {
			object, ok := item.(*corev1.ConfigMap)
			if !ok {
				return fmt.Errorf("a %T", item)
			}
			listed = append(listed, fmt.Sprintf("%s %s", object.Name, object.ResourceVersion))
			return p.disturb(ctx, len(listed))
		})
	if err != nil {
		return err
	}
	if !slices.Equal(listed, before) {
		return errors.New("the pages are not what there was when the first one was asked for: " +
			firstDifference(listed, before))
	}
	p.Report("one-moment", nil, "%d objects on %d pages, while each page saw changes and deletions",
		len(listed), count)
	return nil
}

// fill makes the objects, and gives their names and versions in order.
func (p *place) fill(ctx context.Context) ([]string, error) {
	made := make([]string, pagedObjects)
	faults := make([]error, pagedObjects)
	var filling sync.WaitGroup
	for from := range 6 {
		filling.Go(func() {
			for number := from; number < pagedObjects; number += 6 {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("m%04d", number), Labels: map[string]string{"paged": ""},
				}}
				object, err := p.Client.CoreV1().ConfigMaps(p.Namespace).
					Create(ctx, object, metav1.CreateOptions{})
				if err != nil {
					faults[number] = err
					return
				}
				made[number] = fmt.Sprintf("%s %s", object.Name, object.ResourceVersion)
			}
		})
	}
	filling.Wait()
	return made, errors.Join(faults...)
}

// disturb changes something on every page, before and behind where the reader is.
func (p *place) disturb(ctx context.Context, read int) error {
	if read%pageSize != 0 {
		return nil
	}
	objects := p.Client.CoreV1().ConfigMaps(p.Namespace)
	ahead := (read + 2*pageSize) % pagedObjects
	deleted := fmt.Sprintf("m%04d", ahead)
	if err := objects.Delete(ctx, deleted, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete %s: %w", deleted, err)
	}
	changed := fmt.Sprintf("m%04d", (ahead+1)%pagedObjects)
	_, err := objects.Patch(ctx, changed, "application/merge-patch+json",
		[]byte(`{"data":{"changed":"yes"}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch %s: %w", changed, err)
	}
	added := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: deleted + "-new", Labels: map[string]string{"paged": ""},
	}}
	if _, err := objects.Create(ctx, added, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s: %w", added.Name, err)
	}
	return nil
}

func firstDifference(got, want []string) string {
	for at := range max(len(got), len(want)) {
		switch {
		case at >= len(got):
			return fmt.Sprintf("%q and what follows is missing", want[at])
		case at >= len(want):
			return fmt.Sprintf("%q is too much", got[at])
		case got[at] != want[at]:
			return fmt.Sprintf("%q instead of %q", got[at], want[at])
		}
	}
	return strings.Join(got, " ")
}
