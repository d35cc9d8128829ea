package controller

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "clients.holdfast.example/configmap"

// reconciler sees to it that each widget has its ConfigMap. It is written as such programs are.
type reconciler struct {
	client.Client
	rounds atomic.Int64
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.rounds.Add(1)
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finish(ctx, &widget)
	}
	if !controllerutil.ContainsFinalizer(&widget, finalizer) {
		before := widget.DeepCopyObject().(*Widget)
		controllerutil.AddFinalizer(&widget, finalizer)
		// The list of finalizers is replaced as a whole: it must be the one that was read.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, &widget, patch); err != nil {
			return ctrl.Result{}, ignoreOverrun(err)
		}
	}
	if err := r.write(ctx, &widget); err != nil {
		return ctrl.Result{}, ignoreOverrun(err)
	}
	return ctrl.Result{}, ignoreOverrun(r.report(ctx, &widget))
}

// write makes the widget's ConfigMap what it should be.
func (r *reconciler) write(ctx context.Context, widget *Widget) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: configName(widget.Name), Namespace: widget.Namespace,
	}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"text": wanted(widget)}
		return controllerutil.SetControllerReference(widget, config, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("write the ConfigMap of %s: %w", widget.Name, err)
	}
	return nil
}

// report writes what was done into the widget's status.
func (r *reconciler) report(ctx context.Context, widget *Widget) error {
	status := WidgetStatus{ObservedGeneration: widget.Generation, Written: wanted(widget)}
	if widget.Status == status {
		return nil
	}
	widget.Status = status
	if err := r.Status().Update(ctx, widget); err != nil {
		return fmt.Errorf("report %s: %w", widget.Name, err)
	}
	return nil
}

// finish cleans up after a widget that is going.
func (r *reconciler) finish(ctx context.Context, widget *Widget) error {
	if !controllerutil.ContainsFinalizer(widget, finalizer) {
		return nil
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: configName(widget.Name), Namespace: widget.Namespace,
	}}
	if err := r.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the ConfigMap of %s: %w", widget.Name, err)
	}
	controllerutil.RemoveFinalizer(widget, finalizer)
	return ignoreOverrun(client.IgnoreNotFound(r.Update(ctx, widget)))
}

// ignoreOverrun passes over writes that somebody else's came before: the event of that one is on
// its way, and brings us here again.
func ignoreOverrun(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func configName(widget string) string {
	return "of-" + widget
}

func wanted(widget *Widget) string {
	return strings.Repeat(widget.Spec.Text, widget.Spec.Repeat)
}

// manager is a program with the controller in it.
func manager(
	base *rest.Config, scheme *runtime.Scheme, namespace string,
) (ctrl.Manager, *reconciler, error) {
	here := cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	manager, err := ctrl.NewManager(base, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         here,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "widgets",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		// As long as it takes: the check as a whole has its time.
		GracefulShutdownTimeout: ptr.To(time.Duration(-1)),
		// Its second life, in the same process, has the name of the first.
		Controller: config.Controller{
			SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 8,
			// The other queue of controller-runtime 0.24 can lock itself up when it is shut down
			// while its workers are at work, whichever server they work with.
			UsePriorityQueue: ptr.To(false),
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("manager: %w", err)
	}
	reconciler := &reconciler{Client: manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		return nil, nil, fmt.Errorf("controller: %w", err)
	}
	return manager, reconciler, nil
}
