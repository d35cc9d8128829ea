package load

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// port is a client of ConfigMaps in a namespace.
type port interface {
	create(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error)
	get(ctx context.Context, name string) (*corev1.ConfigMap, error)
	update(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error)
	patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte,
	) (*corev1.ConfigMap, error)
	delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

type typed struct {
	client typedv1.ConfigMapInterface
}

func typedPort(config *rest.Config, namespace string) (port, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("typed client: %w", err)
	}
	return typed{client.CoreV1().ConfigMaps(namespace)}, nil
}

func (t typed) create(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return t.client.Create(ctx, object, metav1.CreateOptions{})
}

func (t typed) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return t.client.Get(ctx, name, metav1.GetOptions{})
}

func (t typed) update(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return t.client.Update(ctx, object, metav1.UpdateOptions{})
}

func (t typed) patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte,
) (*corev1.ConfigMap, error) {
	return t.client.Patch(ctx, name, kind, patch, metav1.PatchOptions{})
}

func (t typed) delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return t.client.Delete(ctx, name, options)
}

type untyped struct {
	client dynamic.ResourceInterface
}

func dynamicPort(config *rest.Config, namespace string) (port, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("dynamic client: %w", err)
	}
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	return untyped{client.Resource(resource).Namespace(namespace)}, nil
}

// written turns a ConfigMap into what a dynamic client sends.
func written(object *corev1.ConfigMap) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", object.Name, err)
	}
	sent := &unstructured.Unstructured{Object: content}
	sent.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return sent, nil
}

// read turns what a dynamic client got back into a ConfigMap.
func read(got *unstructured.Unstructured, err error) (*corev1.ConfigMap, error) {
	if err != nil {
		return nil, err
	}
	object := &corev1.ConfigMap{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, object)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", got.GetName(), err)
	}
	return object, nil
}

func (u untyped) create(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	sent, err := written(object)
	if err != nil {
		return nil, err
	}
	return read(u.client.Create(ctx, sent, metav1.CreateOptions{}))
}

func (u untyped) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return read(u.client.Get(ctx, name, metav1.GetOptions{}))
}

func (u untyped) update(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	sent, err := written(object)
	if err != nil {
		return nil, err
	}
	return read(u.client.Update(ctx, sent, metav1.UpdateOptions{}))
}

func (u untyped) patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte,
) (*corev1.ConfigMap, error) {
	return read(u.client.Patch(ctx, name, kind, patch, metav1.PatchOptions{}))
}

func (u untyped) delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return u.client.Delete(ctx, name, options)
}
