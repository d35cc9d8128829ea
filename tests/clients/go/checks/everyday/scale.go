package everyday

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/utils/ptr"
)

// scales reads and writes how many there are of a thing without knowing what it is.
func scales(ctx context.Context, p *place) error {
	cached := memory.NewMemCacheClient(p.Client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	client, err := scale.NewForConfig(p.Config(), mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(p.Client.Discovery()))
	if err != nil {
		return fmt.Errorf("scale client: %w", err)
	}
	things, err := p.scalable(ctx)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(things))
	for _, name := range names {
		err := p.scale(ctx, client.Scales(p.Namespace), name, things[name])
		p.Report(name, err, "read, replaced and patched; the object says the same")
	}
	return nil
}

// wanted reads how many replicas an object wants.
type wanted func(context.Context) (int32, error)

// scalable makes one of each kind, with two replicas, and gives what reads how many it wants.
func (p *place) scalable(ctx context.Context) (map[string]wanted, error) {
	labels := map[string]string{"app": "a"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "image.example/a"}}},
	}
	meta := metav1.ObjectMeta{Name: "scaled"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	apps, core := p.Client.AppsV1(), p.Client.CoreV1()
	create, get := metav1.CreateOptions{}, metav1.GetOptions{}
	if _, err := apps.Deployments(p.Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template},
	}, create); err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	if _, err := apps.StatefulSets(p.Namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template},
	}, create); err != nil {
		return nil, fmt.Errorf("stateful set: %w", err)
	}
	if _, err := core.ReplicationControllers(p.Namespace).Create(ctx,
		&corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: ptr.To[int32](2), Selector: labels, Template: &template,
		}}, create); err != nil {
		return nil, fmt.Errorf("replication controller: %w", err)
	}
	return map[string]wanted{
		"deployments.apps": func(ctx context.Context) (int32, error) {
			object, err := apps.Deployments(p.Namespace).Get(ctx, meta.Name, get)
			return ptr.Deref(object.Spec.Replicas, -1), err
		},
		"statefulsets.apps": func(ctx context.Context) (int32, error) {
			object, err := apps.StatefulSets(p.Namespace).Get(ctx, meta.Name, get)
			return ptr.Deref(object.Spec.Replicas, -1), err
		},
		"replicationcontrollers": func(ctx context.Context) (int32, error) {
			object, err := core.ReplicationControllers(p.Namespace).Get(ctx, meta.Name, get)
			return ptr.Deref(object.Spec.Replicas, -1), err
		},
	}, nil
}

func (p *place) scale(
	ctx context.Context, scales scale.ScaleInterface, resource string, wants wanted,
) error {
	kind := schema.ParseGroupResource(resource)
	current, err := scales.Get(ctx, kind, "scaled", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := says(current, 2); err != nil {
		return err
	}
	if current.Status.Selector != "app=a" {
		return fmt.Errorf("the selector is %q", current.Status.Selector)
	}
	current.Spec.Replicas = 5
	updated, err := scales.Update(ctx, kind, current, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if err := says(updated, 5); err != nil {
		return err
	}
	mapped, err := restmapper.NewDeferredDiscoveryRESTMapper(
		memory.NewMemCacheClient(p.Client.Discovery())).ResourceFor(kind.WithVersion(""))
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	patched, err := scales.Patch(ctx, mapped, "scaled", types.MergePatchType,
		[]byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	if err := says(patched, 3); err != nil {
		return err
	}
	if replicas, err := wants(ctx); err != nil || replicas != 3 {
		return fmt.Errorf("the object wants %d: %w", replicas, err)
	}
	return nil
}

func says(scale *autoscalingv1.Scale, want int32) error {
	if scale.Spec.Replicas != want {
		return fmt.Errorf("the scale says %d, not %d", scale.Spec.Replicas, want)
	}
	return nil
}
