package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

// Widget is what the controller looks after: it wants a ConfigMap with its text.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is what is wanted.
type WidgetSpec struct {
	Text string `json:"text"`
	// Repeat is filled in by the server where nobody says otherwise.
	Repeat int `json:"repeat,omitempty"`
}

// WidgetStatus is what was done.
type WidgetStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Written            string `json:"written,omitempty"`
}

// WidgetList is some of them.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

// DeepCopyInto copies all that others could change.
func (w *Widget) DeepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := &Widget{}
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: l.TypeMeta, Items: make([]Widget, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for at := range l.Items {
		l.Items[at].DeepCopyInto(&out.Items[at])
	}
	return out
}

// register makes widgets known under a group.
func register(scheme *runtime.Scheme, group string) schema.GroupVersion {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	return version
}

// definition is the custom kind: with a default, a limit, and a status of its own.
func definition(group string) *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	count := apiextensionsv1.JSONSchemaProps{
		Type:    "integer",
		Minimum: ptr.To(1.0),
		Maximum: ptr.To(9.0),
		Default: &apiextensionsv1.JSON{Raw: []byte("2")},
	}
	object := func(
		required []string, properties map[string]apiextensionsv1.JSONSchemaProps,
	) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: required, Properties: maps.Clone(properties),
		}
	}
	whole := object([]string{"spec"}, map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object([]string{"text"}, map[string]apiextensionsv1.JSONSchemaProps{
			"text": text, "repeat": count,
		}),
		"status": object(nil, map[string]apiextensionsv1.JSONSchemaProps{
			"observedGeneration": {Type: "integer", Format: "int64"}, "written": text,
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name:   "v1",
				Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

// define makes the custom kind, and returns when it is served, with what removes it.
func define(ctx context.Context, config *rest.Config, group string) (func() error, error) {
	clientset, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	definitions := clientset.ApiextensionsV1().CustomResourceDefinitions()
	made, err := definitions.Create(ctx, definition(group), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("define widgets: %w", err)
	}
	remove := func() error {
		return definitions.Delete(context.WithoutCancel(ctx), made.Name, metav1.DeleteOptions{})
	}
	selector := fields.OneTermEqualSelector("metadata.name", made.Name).String()
	one := &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			options.FieldSelector = selector
			return definitions.List(ctx, options)
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			options.FieldSelector = selector
			return definitions.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, one, &apiextensionsv1.CustomResourceDefinition{}, nil,
		func(event watch.Event) (bool, error) { return established(event.Object), nil })
	if err != nil {
		return remove, fmt.Errorf("widgets are never established: %w", err)
	}
	return remove, discovered(ctx, config, group)
}

// discovered waits until clients can find the kind: discovery may follow a little later, and that of
// everything later than that of the group.
func discovered(ctx context.Context, config *rest.Config, group string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true,
		func(context.Context) (bool, error) {
			found, err := client.ServerResourcesForGroupVersion(group + "/v1")
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil || len(found.APIResources) == 0 {
				return false, err
			}
			all, err := client.ServerGroups()
			named := func(found metav1.APIGroup) bool { return found.Name == group }
			return err == nil && slices.ContainsFunc(all.Groups, named), err
		})
	if err != nil {
		return fmt.Errorf("widgets are never discovered: %w", err)
	}
	return nil
}

func established(object runtime.Object) bool {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return false
	}
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
