// Package history is what the checks are judged by: which writes the server took, in which order,
// and what a client that watches must have seen of them, no more and no less.
package history

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// MarkAnnotation holds the mark of the write that made a state: no two writes have the same.
const MarkAnnotation = "clients.holdfast.example/mark"

// Ours says whether a writer of a check made an object. A cluster puts others into every namespace.
func Ours(object any) bool {
	meta, ok := object.(metav1.Object)
	return ok && meta.GetAnnotations()[MarkAnnotation] != ""
}

// State is an object as one write left it.
type State struct {
	Name    string
	UID     types.UID
	Version Version
	// Meta stands for labels and annotations: the mark, for people, and a sum.
	Meta string
	// Body stands for everything else that a write sets. It is empty where only metadata was read.
	Body string
	// Ending is set when the object was marked for deletion and is still there.
	Ending bool
}

// Attributes are what selectors look at.
type Attributes struct {
	Labels labels.Set
	Fields fields.Set
}

// Read takes the state of an object that a client was given, whatever its form.
func Read(object any) (State, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return State{}, fmt.Errorf("a %T is no object", object)
	}
	version, err := Parse(meta.GetResourceVersion())
	if err != nil {
		return State{}, fmt.Errorf("object %s: %w", meta.GetName(), err)
	}
	body, err := bodyOf(object)
	if err != nil {
		return State{}, fmt.Errorf("object %s: %w", meta.GetName(), err)
	}
	mark := meta.GetAnnotations()[MarkAnnotation]
	sum, err := digest(meta.GetLabels(), meta.GetAnnotations())
	if err != nil {
		return State{}, err
	}
	return State{
		Name:    meta.GetName(),
		UID:     meta.GetUID(),
		Version: version,
		Meta:    mark + "~" + sum,
		Body:    body,
		Ending:  meta.GetDeletionTimestamp() != nil,
	}, nil
}

// AttributesOf takes what selectors look at.
func AttributesOf(object any) (Attributes, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return Attributes{}, fmt.Errorf("a %T is no object", object)
	}
	attributes := Attributes{
		Labels: meta.GetLabels(),
		Fields: fields.Set{
			"metadata.name":      meta.GetName(),
			"metadata.namespace": meta.GetNamespace(),
		},
	}
	if pod, ok := object.(*corev1.Pod); ok {
		attributes.Fields["spec.nodeName"] = pod.Spec.NodeName
		attributes.Fields["status.phase"] = string(pod.Status.Phase)
	}
	return attributes, nil
}

// bodyOf sums up the part of an object that our writers set.
func bodyOf(object any) (string, error) {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		return digest(object.Data)
	case *corev1.Secret:
		return digest(object.Data)
	case *corev1.Service:
		return digest(object.Spec.ExternalName)
	case *corev1.Pod:
		return digest(object.Spec.NodeName, string(object.Status.Phase), object.Status.Message)
	case *metav1.PartialObjectMetadata:
		return "", nil
	case *unstructured.Unstructured:
		switch object.GetKind() {
		case "Pod":
		case "Service":
			name, _, err := unstructured.NestedString(object.Object, "spec", "externalName")
			if err != nil {
				return "", err
			}
			return digest(name)
		default:
			return digest(object.Object["data"])
		}
		node, _, err := unstructured.NestedString(object.Object, "spec", "nodeName")
		if err != nil {
			return "", err
		}
		phase, _, err := unstructured.NestedString(object.Object, "status", "phase")
		if err != nil {
			return "", err
		}
		message, _, err := unstructured.NestedString(object.Object, "status", "message")
		if err != nil {
			return "", err
		}
		return digest(node, phase, message)
	default:
		return "", fmt.Errorf("no writer makes a %T", object)
	}
}

func digest(parts ...any) (string, error) {
	sum := fnv.New64a()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		return "", fmt.Errorf("sum up: %w", err)
	}
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}
