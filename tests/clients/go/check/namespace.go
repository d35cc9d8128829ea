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

// Namespace makes a namespace of the check's own, and gives its name and what removes it. Nobody
// waits for the removal: whether it ends is a matter of controllers that may not run.
func (r *Run) Namespace(ctx context.Context) (name string, remove func(), err error) {
	client, err := kubernetes.NewForConfig(r.Config())
	if err != nil {
		return "", nil, fmt.Errorf("client: %w", err)
	}
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "clients-" + strings.ReplaceAll(r.Name, "/", "-") + "-",
	}}
	made, err := client.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return "", nil, fmt.Errorf("make a namespace: %w", err)
	}
	// Pods need it, and where no controller makes it we do.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = client.CoreV1().ServiceAccounts(made.Name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", nil, fmt.Errorf("make the default service account: %w", err)
	}
	remove = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err := client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{})
		if err != nil {
			r.Report("cleanup", err, "remove namespace %s", made.Name)
		}
	}
	return made.Name, remove, nil
}
