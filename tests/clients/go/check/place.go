package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Place is what most checks work with: a run, a client, and a namespace of the check's own.
type Place struct {
	*Run
	Client    *kubernetes.Clientset
	Namespace string
	source    kubernetes.Interface
}

// Placed gives a check its place. What it has started ends with it, before the place goes.
func Placed(do func(context.Context, *Place) error) func(context.Context, *Run) error {
	return func(ctx context.Context, run *Run) error {
		client, err := kubernetes.NewForConfig(run.Config())
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		prefix := "clients-" + strings.ReplaceAll(run.Name, "/", "-") + "-"
		// A replica may be cut off from where it is made.
		source, err := kubernetes.NewForConfig(run.Witness())
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		namespace, err := makeNamespace(ctx, source, prefix)
		if err != nil {
			return err
		}
		place := &Place{Run: run, Client: client, Namespace: namespace, source: source}
		defer place.remove(ctx)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return do(ctx, place)
	}
}

func makeNamespace(
	ctx context.Context, client kubernetes.Interface, prefix string,
) (string, error) {
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	made, err := client.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a namespace: %w", err)
	}
	// Pods need it, and where no controller makes it we do.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = client.CoreV1().ServiceAccounts(made.Name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("make the default service account: %w", err)
	}
	return made.Name, nil
}

// remove removes the namespace. Nobody waits for its end: whether it comes is a matter of
// controllers that may not run.
func (p *Place) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := p.source.CoreV1().Namespaces().Delete(ctx, p.Namespace, metav1.DeleteOptions{})
	if err != nil {
		p.Report("cleanup", err, "remove namespace %s", p.Namespace)
	}
}
