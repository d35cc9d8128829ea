package expiry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"holdfast.example/tests/clients/follow"
)

// refusals asks for the expired version in every way that there is.
func (e *expiry) refusals(ctx context.Context) {
	e.Report("watch", e.watches(ctx), "typed, dynamic and metadata watches from it end with 410")
	e.Report("exact-list", e.exactList(ctx), "a list at exactly it is 410")
	e.Report("newer-list", e.newerList(ctx), "a list not older than it is of now")
	rest, err := e.oldToken(ctx)
	e.Report("continue", err,
		"an old token is 410 with one that goes on without a version: %d more", rest)
	all, err := e.pager(ctx)
	e.Report("pager", err, "a ListPager with an old token lists all %d anew", all)
	e.Report("future", e.future(ctx), "a list at a version of the future is told to come later")
}

// expired checks that a refusal is one that client-go takes for what it is.
func expired(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return errors.New("it was served")
	case !apierrors.IsResourceExpired(err) || !errors.As(err, &status):
		return fmt.Errorf("refused otherwise: %w", err)
	case status.Status().Code != http.StatusGone:
		return fmt.Errorf("the code is %d", status.Status().Code)
	}
	return nil
}

func (e *expiry) watches(ctx context.Context) error {
	untyped, err := dynamic.NewForConfig(e.Config())
	if err != nil {
		return err
	}
	partial, err := metadata.NewForConfig(e.Config())
	if err != nil {
		return err
	}
	for name, open := range map[string]follow.Open{
		"typed":    e.secrets.Watch,
		"dynamic":  untyped.Resource(secrets).Namespace(e.Namespace).Watch,
		"metadata": partial.Resource(secrets).Namespace(e.Namespace).Watch,
	} {
		_, err := e.peek(ctx, open)
		if err := expired(err); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (e *expiry) exactList(ctx context.Context) error {
	_, err := e.secrets.List(ctx, metav1.ListOptions{
		ResourceVersion:      e.first,
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	return expired(err)
}

func (e *expiry) newerList(ctx context.Context) error {
	list, err := e.secrets.List(ctx, metav1.ListOptions{
		ResourceVersion:      e.first,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return err
	}
	if len(list.Items) < len(e.held) {
		return fmt.Errorf("it has %d objects; there are %d", len(list.Items), len(e.held))
	}
	return nil
}

// oldToken goes on with a token whose version is gone. The refusal has another one.
func (e *expiry) oldToken(ctx context.Context) (int, error) {
	_, err := e.secrets.List(ctx, metav1.ListOptions{Continue: e.token, Limit: 500})
	if err := expired(err); err != nil {
		return 0, err
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Continue == "" {
		return 0, fmt.Errorf("there is no token to go on with: %w", err)
	}
	rest, err := e.secrets.List(ctx, metav1.ListOptions{Continue: status.Status().Continue})
	if err != nil {
		return 0, fmt.Errorf("go on: %w", err)
	}
	// What comes after the first page is given as it is now.
	whole, err := e.secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list: %w", err)
	}
	var want []string
	for _, secret := range whole.Items {
		if secret.Name > e.page[len(e.page)-1] {
			want = append(want, secret.Name)
		}
	}
	var got []string
	for _, secret := range rest.Items {
		got = append(got, secret.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return 0, fmt.Errorf("the rest is %v; it should be %v", got, want)
	}
	return len(got), nil
}

// pager does what client-go's programs do: it begins anew where a token is too old.
func (e *expiry) pager(ctx context.Context) (int, error) {
	pages := pager.New(func(
		ctx context.Context, options metav1.ListOptions,
	) (runtime.Object, error) {
		return e.secrets.List(ctx, options)
	})
	list, _, err := pages.ListWithAlloc(ctx, metav1.ListOptions{Continue: e.token, Limit: 7})
	if err != nil {
		return 0, err
	}
	if count := meta.LenList(list); count < len(e.held) {
		return 0, fmt.Errorf("it has %d objects; there are %d", count, len(e.held))
	}
	return meta.LenList(list), nil
}

// future asks for a version that is not there yet: clients wait a second and ask again.
func (e *expiry) future(ctx context.Context) error {
	now, err := e.secrets.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(now.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	// A client would ask ten times before it says so.
	err = e.Client.CoreV1().RESTClient().Get().
		Namespace(e.Namespace).Resource(secrets.Resource).
		Param("resourceVersion", strconv.FormatUint(version+1_000_000, 10)).
		MaxRetries(0).Do(ctx).Error()
	if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return fmt.Errorf("not said to be too large: %w", err)
	}
	if _, later := apierrors.SuggestsClientDelay(err); !later {
		return fmt.Errorf("not told to come later: %w", err)
	}
	return nil
}
